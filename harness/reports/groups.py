"""Cases that failed in the same way, folded into one entry each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from harness.reports.letters import LETTERS, kind
from harness.verdicts.outcomes import CellResult, Outcome

_QUIET = frozenset({Outcome.PASS, Outcome.UNSUPPORTED})


@dataclass(slots=True)
class Group:
    """Cases of one kind with one message at one location: how many in each cell, and their ids without repetition."""

    kind: str
    message: str
    location: str
    expectation: str | None
    cells: dict[tuple[str, str, str], int] = field(default_factory=dict)
    ids: dict[str, None] = field(default_factory=dict)

    @property
    def cases(self) -> int:
        """Number of cases, over all cells."""
        return sum(self.cells.values())


def group(cells: Iterable[CellResult]) -> list[Group]:
    """Fold every case that neither passed nor was unsupported; worst kind first, then in the order they came."""
    found: dict[tuple[str, str, str, str | None], Group] = {}
    for cell in cells:
        for case in cell.cases:
            if case.outcome in _QUIET:
                continue
            key = (kind(case), case.message, case.location, case.expectation)
            entry = found.setdefault(key, Group(*key))
            where = (cell.sut, cell.platform, cell.mode)
            entry.cells[where] = entry.cells.get(where, 0) + 1
            entry.ids[case.id] = None
    order = list(LETTERS)
    return sorted(found.values(), key=lambda entry: order.index(entry.kind))
