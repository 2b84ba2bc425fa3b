"""Two SUTs' cells side by side: the verdict on each case and on the change."""

from __future__ import annotations

from collections.abc import Sequence

from harness.cells import CellRequest
from harness.reports.gated import Gated
from harness.sut.spec import SutTree
from harness.verdicts.gate import judge_case
from harness.verdicts.outcomes import CaseResult, CellResult


def compare(
    results: Sequence[CellResult],
    *,
    base: SutTree,
    head: SutTree,
    again: tuple[Sequence[CellRequest], Sequence[CellResult]] = ((), ()),
) -> Gated:
    """Set the cells of base (the first half) beside those of head, and judge each case and the change."""
    second: dict[tuple[str, str, str], CaseResult] = {
        (request.sut.name, request.platform, case.id): case
        for request, result in zip(*again, strict=True)
        for case in result.cases
    }
    half = len(results) // 2
    gated = Gated(base=base, head=head)
    for before, after in zip(results[:half], results[half:], strict=True):
        gated.add_cells(before, after)
        sides = [{case.id: case for case in cell.cases} for cell in (before, after)]
        for id_ in dict.fromkeys([*sides[1], *sides[0]]):
            one, two = (side.get(id_) for side in sides)
            seen = [second.get((name, after.platform, id_)) for name in (base.name, head.name)]
            repeats = [case for case in seen if case is not None]
            gated.add_case(one, two, judge_case(one, two, repeats), repeats, after)
    return gated
