"""Cases that failed in the same way, folded into one entry each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from harness.reports.letters import LETTERS, kind
from harness.verdicts.outcomes import CellResult, Outcome

_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_QUIET = frozenset({Outcome.PASS, Outcome.UNSUPPORTED})


@dataclass(slots=True)
class Group:
    """Cases that failed alike: how many in each (sut, platform, mode), and their ids without repetition.

    `message` and `location` are those of the first one; `messages` are all that there were.
    """

    kind: str
    message: str
    location: str
    expectation: str | None
    messages: set[str] = field(default_factory=set)
    cells: dict[tuple[str, str, str], int] = field(default_factory=dict)
    ids: dict[str, None] = field(default_factory=dict)

    @property
    def cases(self) -> int:
        """Number of cases, over all cells."""
        return sum(self.cells.values())


def group(cells: Iterable[CellResult]) -> list[Group]:
    """Fold every case that neither passed nor was unsupported; worst kind first, then in the order they came.

    Alike are failures at one location whose messages differ in numbers only, and all that one expectation covers.
    """
    found: dict[tuple[str, str, str], Group] = {}
    for cell in cells:
        for case in cell.cases:
            if case.outcome in _QUIET:
                continue
            alike = ("", case.expectation) if case.expectation else (shape(case.message), case.location)
            entry = found.setdefault(
                (kind(case), *alike), Group(kind(case), case.message, case.location, case.expectation)
            )
            entry.messages.add(case.message)
            where = (cell.sut, cell.platform, cell.mode)
            entry.cells[where] = entry.cells.get(where, 0) + 1
            entry.ids[case.id] = None
    order = list(LETTERS)
    return sorted(found.values(), key=lambda entry: order.index(entry.kind))


def shape(message: str) -> str:
    """Return a message without its numbers."""
    return _NUMBER.sub("#", message)
