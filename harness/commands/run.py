"""`poolparity run`: check, resolve, run the cells, report. Each step is done before the next one writes anything."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from harness.bundles import place
from harness.cells import CellRequest
from harness.commands.judging import bundle_folder, judge
from harness.commands.notes import expectation_notes, unmatched_expectations
from harness.commands.options import RunOptions
from harness.commands.requests import check_selection, make_requests
from harness.commands.resolving import resolve_all
from harness.commands.signals import terminate_as_interrupt
from harness.reports.as_json import STDOUT, check_target, write_json
from harness.reports.progress import note, stderr_console
from harness.reports.terminal import show_run
from harness.verdicts.exit_code import CLEAN, INFRASTRUCTURE, MEASURED_NOTHING, exit_code
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
        requests = make_requests(selection, trees, seed=options.seed, case_timeout_s=options.case_timeout_s)
        with bundle_folder(options.out, console) as folder:
            results, code = judge(options, trees, requests, folder, console, code_of=partial(_code, requests))
    _report(options, results, notes, code)
    for message in unmatched_expectations(requests, results):
        note(console, message)
    if code == MEASURED_NOTHING:
        note(console, f"measured nothing: {_cases(results)} cases, and none of them compared anything")
    return code


def _code(requests: Sequence[CellRequest], results: list[CellResult]) -> int:
    """The exit code of the cases; 3 when all would be well but for an expectation that speaks of no case."""
    code = exit_code(results)
    return INFRASTRUCTURE if code == CLEAN and unmatched_expectations(requests, results) else code


def _report(options: RunOptions, results: list[CellResult], notes: Mapping[str, str], code: int) -> None:
    if options.json is not None:
        write_json(options.json, "run", code, {"cells": msgspec.to_builtins(results)})
    if options.json != STDOUT:
        show_run(results, notes, sys.stdout)


def _cases(results: list[CellResult]) -> int:
    return sum(len(result.cases) for result in results)
