"""What expectations have to say beside outcomes: why a failure is expected, and which of them speak of no case."""

from __future__ import annotations

from collections.abc import Sequence

from harness.cells import CellRequest
from harness.commands.names import DEFAULT_SUITES
from harness.data import fixtures_dir
from harness.verdicts.expectations import Expectation, load
from harness.verdicts.outcomes import CellResult


def expectations() -> list[Expectation]:
    """Return every expectation; UsageError when their files are broken."""
    return load(fixtures_dir() / "expectations")


def expectation_notes() -> dict[str, str]:
    """Map the id of each expectation to its reference and reason; UsageError when their files are broken."""
    return {entry.id: f"{entry.reference}: {entry.reason} (until {entry.expires})" for entry in expectations()}


def unmatched_expectations(requests: Sequence[CellRequest], results: Sequence[CellResult]) -> list[str]:
    """Return a message for each expectation that holds in a cell and speaks of none of its cases.

    Only whole cells can tell: all suites, no keyword, no ids, and every case collected.
    """
    found = []
    for request, result in zip(requests, results, strict=True):
        whole = request.ids is None and not request.keyword and set(DEFAULT_SUITES) <= set(request.suites)
        if not whole or request.sut.is_reference or request.sut.version is None:
            continue
        cell = {"version": request.sut.version, "platform": result.platform, "mode": result.mode}
        found += [
            f"the expectation {entry.id} speaks of no case of {result.sut} on {result.platform}; expected its "
            f"patterns {', '.join(entry.case)} to match one; correct it or remove it"
            for entry in expectations()
            if entry.holds(**cell) and not any(entry.covers(case.id, **cell) for case in result.cases)
        ]
    return found
