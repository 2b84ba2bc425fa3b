"""The matrix of a run: one row a SUT, one column a platform, in each field what was counted and how it was run."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from harness.reports.letters import LETTERS, count, counts_text, legend
from harness.reports.plain import as_text, plain
from harness.verdicts.outcomes import CellResult


def matrix(cells: Sequence[CellResult]) -> Table:
    """Return the table; a SUT and platform that were not run together leave their field empty."""
    platforms = list(dict.fromkeys(cell.platform for cell in cells))
    table = Table(caption=legend(_kinds(cells)), caption_justify="left", caption_style="")
    table.add_column("SUT")
    for platform in platforms:
        table.add_column(platform, no_wrap=True)
    for sut in dict.fromkeys(cell.sut for cell in cells):
        row = [_fields([cell for cell in cells if (cell.sut, cell.platform) == (sut, name)]) for name in platforms]
        table.add_row(as_text(sut), *row)
    return table


def _kinds(cells: Sequence[CellResult]) -> list[str]:
    present = set().union(*(count(cell.cases) for cell in cells)) if cells else set()
    return [key for key in LETTERS if key in present]


def _fields(cells: Sequence[CellResult]) -> Text:
    return Text("\n").join(_field(cell) for cell in cells)


def _field(cell: CellResult) -> Text:
    how = f"{cell.mode}, {plain(cell.device) or 'no device'}, {cell.seconds:.1f} s"
    return Text.assemble(counts_text(count(cell.cases)), "\n", (how, "dim"))
