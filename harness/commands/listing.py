"""`poolparity list`: the cases that a selection would run, collected by pytest in real cells that run none of them."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text

from harness import cells
from harness.commands.options import Selection
from harness.commands.requests import check_selection, make_requests
from harness.commands.resolving import resolve_all
from harness.reports.as_json import STDOUT, check_target, write_json
from harness.reports.plain import as_text
from harness.reports.progress import Event, Progress
from harness.reports.terminal import console_for
from harness.verdicts.exit_code import CLEAN, INFRASTRUCTURE, MEASURED_NOTHING


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
    """Show the cases and return the exit code: 0, or 4 where the selection is empty."""
    check_target(json)
    check_selection(selection)
    console = Console(file=sys.stderr, markup=False, highlight=False, emoji=False)
    listed = _collect(selection, console)
    code = CLEAN if any(cell.cases for cell in listed) else MEASURED_NOTHING
    if json is not None:
        write_json(json, "list", code, {"cells": msgspec.to_builtins(listed)})
    if json != STDOUT:
        _show(listed)
    return code
