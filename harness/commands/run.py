"""`poolparity run`: check, resolve, run the cells, report. Each step is done before the next one writes anything."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
from rich.console import Console

from harness import cells
from harness.bundles import place
from harness.bundles.write import close_manifest, write_manifest
from harness.commands.notes import expectation_notes
from harness.commands.options import RunOptions
from harness.commands.recording import make_manifest
from harness.commands.requests import check_selection, make_requests
from harness.commands.resolving import resolve_all
from harness.commands.signals import terminate_as_interrupt
from harness.reports.as_json import STDOUT, check_target, write_json
from harness.reports.progress import Progress, note, stderr_console
from harness.reports.terminal import show_run
from harness.sut.spec import SutTree
from harness.verdicts.exit_code import MEASURED_NOTHING, exit_code
from harness.verdicts.outcomes import CellResult


def run(options: RunOptions) -> int:
    """Judge what the options select and return the exit code; raises PoolparityError before anything is written."""
    selection = options.selection
    check_target(options.json)
    if options.out is not None:
        place.check_out(options.out)
    check_selection(selection)
    notes = expectation_notes()
    console = stderr_console()
    with terminate_as_interrupt():
        trees = resolve_all(selection.suts, console)
        folder = place.make(options.out or place.runs_dir() / place.fresh_name())
        results, code = _judge(options, trees, folder, console)
    _report(options, results, notes, code)
    if code == MEASURED_NOTHING:
        note(console, f"measured nothing: {_cases(results)} cases, and none of them compared anything")
    if options.out is None:
        place.prune(place.runs_dir())
    note(console, f"bundle: {folder}")
    return code


def _judge(options: RunOptions, trees: list[SutTree], folder: Path, console: Console) -> tuple[list[CellResult], int]:
    requests = make_requests(options.selection, trees, seed=options.seed, case_timeout_s=options.case_timeout_s)
    manifest = make_manifest(options, trees, requests)
    write_manifest(folder, manifest)
    names = [f"{request.sut.name} {request.platform}" for request in requests]
    try:
        with Progress(names, console) as progress:
            results = cells.run_cells(requests, jobs=options.jobs, out=folder, on_event=progress.on_event)
    except BaseException:
        close_manifest(folder, manifest, "interrupted", None)
        note(console, f"bundle, up to here: {folder}")
        raise
    code = exit_code(results)
    close_manifest(folder, manifest, "complete", code)
    return results, code


def _report(options: RunOptions, results: list[CellResult], notes: Mapping[str, str], code: int) -> None:
    if options.json is not None:
        write_json(options.json, "run", code, {"cells": msgspec.to_builtins(results)})
    if options.json != STDOUT:
        show_run(results, notes, sys.stdout)


def _cases(results: list[CellResult]) -> int:
    return sum(len(result.cases) for result in results)
