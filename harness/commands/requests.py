"""From a selection to the cells that it asks for."""

from __future__ import annotations

from collections.abc import Sequence

from harness.cells import CellRequest
from harness.commands.keyword import check_keyword
from harness.commands.options import CASE_TIMEOUT_S, Selection
from harness.commands.resolving import check_native
from harness.sut.spec import SutTree


def check_selection(selection: Selection) -> None:
    """Raise PoolparityError for what can be known to be wrong before a SUT is fetched."""
    check_keyword(selection.keyword)
    check_native(selection.mode, selection.platforms)


def make_requests(
    selection: Selection,
    trees: Sequence[SutTree],
    *,
    seed: int = 0,
    case_timeout_s: float = CASE_TIMEOUT_S,
    collect_only: bool = False,
) -> list[CellRequest]:
    """Return one request for each SUT and platform, in the order they were asked for."""
    return [
        CellRequest(
            sut=tree,
            platform=platform,
            mode=selection.mode,
            suites=selection.suites,
            keyword=selection.keyword,
            seed=seed,
            case_timeout_s=case_timeout_s,
            collect_only=collect_only,
        )
        for tree in trees
        for platform in selection.platforms
    ]
