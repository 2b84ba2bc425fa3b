"""The exit code of a run, from its cells (docs/contract.md, "The command line").

The rules, first match wins. An *unexpected* outcome is one without the id of an expectation.

1. No case at all, or nothing but `unsupported` and `measured-nothing`: 4, unless a cell could not be
   prepared, which is 3.
2. An unexpected `fail`, `crash` or `timeout`, or a single `measured-nothing` beside any other outcome: 1.
   A red case outranks the harness's own trouble: it is known, whatever else could not be asked.
3. An `error`, or a cell that could not be prepared: 3. The rest may be green, but a question went unasked.
4. Otherwise 0.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.verdicts.outcomes import CaseResult, CellResult, Outcome

CLEAN = 0
RED = 1
USAGE = 2
INFRASTRUCTURE = 3
MEASURED_NOTHING = 4
INTERRUPTED = 130
"""128 + SIGINT, as shells report it."""

_EMPTY = frozenset({Outcome.UNSUPPORTED, Outcome.MEASURED_NOTHING})
_RED = frozenset({Outcome.FAIL, Outcome.CRASH, Outcome.TIMEOUT, Outcome.MEASURED_NOTHING})


def is_red(case: CaseResult) -> bool:
    """Whether a case alone makes the exit code 1."""
    return case.outcome in _RED and case.expectation is None


def exit_code(cells: Iterable[CellResult]) -> int:
    """Return 0, 1, 3 or 4; pure, so that a run, a report and a test judge alike."""
    cases = [case for cell in cells for case in cell.cases]
    if all(case.outcome in _EMPTY for case in cases):
        return MEASURED_NOTHING
    if any(is_red(case) for case in cases):
        return RED
    if any(case.outcome == Outcome.ERROR for case in cases):
        return INFRASTRUCTURE
    return CLEAN
