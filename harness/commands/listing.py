"""`poolparity list`: the cases that a selection would run, collected by pytest in real cells that run none of them."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import msgspec
from rich.console import Console
from rich.text import Text

from harness import cells
from harness.commands.options import Selection
from harness.commands.requests import check_selection, make_requests
from harness.commands.resolving import resolve_all
from harness.commands.signals import terminate_as_interrupt
from harness.reports.as_json import STDOUT, check_target, write_json
from harness.reports.plain import as_text
from harness.reports.progress import Event, Progress, note, stderr_console
from harness.reports.terminal import console_for
from harness.verdicts.exit_code import CLEAN, INFRASTRUCTURE, MEASURED_NOTHING
from harness.verdicts.outcomes import CellResult


class ListedCase(msgspec.Struct, frozen=True):
    """One case: its id, its suite, and what it would check (the first line of the test's docstring)."""

    id: str
    suite: str
    checks: str


class ListedCell(msgspec.Struct):
    """The cases of one cell. `mode` is the one it would run in."""

    sut: str
    platform: str
    mode: str
    cases: list[ListedCase]


def list_cases(selection: Selection, json: str | None) -> int:
    """Show the cases and return the exit code: 0, 3 where something could not be collected, 4 for none at all."""
    check_target(json)
    check_selection(selection)
    console = stderr_console()
    with terminate_as_interrupt():
        listed, results = _collect(selection, console)
    code = _exit_code(listed, results)
    if json is not None:
        write_json(json, "list", code, {"cells": msgspec.to_builtins(listed)})
    if json != STDOUT:
        _show(listed)
    for case in (case for result in results for case in result.cases):
        note(console, f"{case.id}: {case.outcome}: {case.message}")
    return code


def _exit_code(listed: Sequence[ListedCell], results: Sequence[CellResult]) -> int:
    """Collecting runs no case, so an outcome is a suite or a cell that could not be collected."""
    if any(result.cases for result in results):
        return INFRASTRUCTURE
    return CLEAN if any(cell.cases for cell in listed) else MEASURED_NOTHING


def _collect(selection: Selection, console: Console) -> tuple[list[ListedCell], list[CellResult]]:
    requests = make_requests(selection, resolve_all(selection.suts, console), collect_only=True)
    listed = [ListedCell(request.sut.name, request.platform, request.mode, []) for request in requests]
    progress = Progress([f"{cell.sut} {cell.platform}" for cell in listed], console)

    def on_event(number: int, event: Event) -> None:
        progress.on_event(number, event)
        take(listed[number], event)

    with progress, tempfile.TemporaryDirectory(prefix="poolparity-list-") as folder:
        results = cells.run_cells(requests, jobs=len(os.sched_getaffinity(0)), out=Path(folder), on_event=on_event)
    return listed, results


def take(cell: ListedCell, event: Event) -> None:
    """Take in one event of a cell."""
    if event["event"] == "prepared":
        cell.mode = event["mode"]
    elif event["event"] == "collected":
        pairs = zip(event["ids"], event["checks"], strict=True)
        cell.cases = [ListedCase(id_, id_.partition("/")[0], checks) for id_, checks in pairs]


def _show(listed: Sequence[ListedCell]) -> None:
    console = console_for(sys.stdout)
    for cell in listed:
        title = as_text(f"{cell.sut} {cell.platform} {cell.mode}: {len(cell.cases)} cases", "bold")
        console.print(title, soft_wrap=True)
        for checks, cases in groupby(cell.cases, key=lambda case: case.checks):
            console.print(Text.assemble("  ", as_text(checks or "(the test has no docstring)", "cyan")), soft_wrap=True)
            for case in cases:
                console.print(Text.assemble("    ", as_text(case.id)), soft_wrap=True)
