"""The result of a run for a person: the matrix, then what failed and why, then what was expected to fail."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TextIO

from rich.console import Console
from rich.text import Text

from harness.reports.groups import Group, group
from harness.reports.letters import EXPECTED, LETTERS
from harness.reports.matrix import matrix
from harness.reports.plain import as_text, plain
from harness.verdicts.outcomes import CellResult

_IDS = 4
_LINES = 12
_WIDE = 200


def show_run(cells: Sequence[CellResult], notes: Mapping[str, str], stream: TextIO) -> None:
    """Print a run to `stream`. `notes` maps the id of an expectation to its reference and reason."""
    console = console_for(stream)
    if cells:
        console.print(matrix(cells))
    groups = group(cells)
    red = [entry for entry in groups if entry.kind != EXPECTED]
    expected = [entry for entry in groups if entry.kind == EXPECTED]
    for title, entries in (("What is wrong", red), ("Expected failures", expected)):
        if entries:
            _line(console, Text(f"\n{title}", style="bold"))
        for entry in entries:
            _show_group(console, entry, notes)


def console_for(stream: TextIO) -> Console:
    """Return a console that never reads markup, and that does not fold tables in a file or a pipe."""
    console = Console(file=stream, markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = max(console.width, _WIDE)
    return console


def _show_group(console: Console, entry: Group, notes: Mapping[str, str]) -> None:
    letter, style, word = LETTERS[entry.kind]
    where = f"  {plain(entry.location)}" if entry.location else ""
    _line(console, Text.assemble("\n", (f"{letter} {word}", style), f" x{entry.cases}", (where, "bold")))
    for text in cut(entry.message):
        _line(console, Text.assemble("    ", as_text(text)))
    if len(entry.messages) > 1:
        _line(console, Text(f"    (the first of {len(entry.messages)} messages)", style="dim"))
    if entry.expectation is not None:
        note = notes.get(entry.expectation, "no such expectation in fixtures/expectations")
        _line(console, Text.assemble("  expected: ", as_text(f"{entry.expectation}: {note}", "cyan")))
    cells = ", ".join(f"{sut} {platform} {mode} ({n})" for (sut, platform, mode), n in entry.cells.items())
    _line(console, Text.assemble("  in ", as_text(cells)))
    for id_ in islice(entry.ids, _IDS):
        _line(console, Text.assemble("    ", as_text(id_, "dim")))
    if len(entry.ids) > _IDS:
        _line(console, Text(f"    … and {len(entry.ids) - _IDS} more", style="dim"))


def cut(message: str) -> list[str]:
    """Return the first lines of a message, and how many were left out."""
    lines = message.strip().splitlines() or ["(no message)"]
    rest = len(lines) - _LINES
    return lines if rest <= 0 else [*lines[:_LINES], f"… {rest} more lines, whole in the bundle's events.jsonl"]


def _line(console: Console, text: Text) -> None:
    console.print(text, soft_wrap=True)


def rendered(cells: Sequence[CellResult], notes: Mapping[str, str]) -> str:
    """Return what `show_run` prints to a file, as one string."""
    stream = io.StringIO()
    show_run(cells, notes, stream)
    return stream.getvalue()
