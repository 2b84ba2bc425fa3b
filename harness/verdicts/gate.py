"""What a change did to each case, and to the whole: the rules of `poolparity gate`, as pure functions.

A case is *good* when it passed, or was refused clearly as the specification wants; it is *bad* when the SUT failed it.
What the harness could not ask (`error`) is neither, so nothing that depends on it is called a regression or a fix.
An expected failure is bad: the expectation excuses it from the verdict on the change, not from the truth. A case that
fails only because its expectation is stale did pass, and counts as good.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

import msgspec
from msgspec import UNSET

from harness.verdicts.exit_code import CLEAN, INFRASTRUCTURE, MEASURED_NOTHING, RED
from harness.verdicts.outcomes import CaseResult, Outcome


class Verdict(StrEnum):
    """What a comparison of two runs says of a case or of the change (docs/contract.md, "Words")."""

    REGRESSION = "regression"
    FIXED = "fixed"
    STILL_FAILING = "still-failing"
    NEW_CASE = "new-case"
    GONE_CASE = "gone-case"
    CLEAN = "clean"
    INCONCLUSIVE = "inconclusive"
    MEASURED_NOTHING = "measured-nothing"


BAD: Final = frozenset({Outcome.FAIL, Outcome.CRASH, Outcome.TIMEOUT})

_PAIRS: Final = {
    (False, False): Verdict.CLEAN,
    (False, True): Verdict.REGRESSION,
    (True, False): Verdict.FIXED,
    (True, True): Verdict.STILL_FAILING,
}
_EXIT_CODES: Final = {
    Verdict.REGRESSION: RED,
    Verdict.MEASURED_NOTHING: MEASURED_NOTHING,
    Verdict.INCONCLUSIVE: INFRASTRUCTURE,
}


class CaseVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """One case on one platform: its outcome on either side (None: it did not run there) and what that means.

    `again` are the outcomes of the second runs that were made; `expectation` is head's, or base's where head passed.
    """

    id: str
    platform: str
    base: str | None
    head: str | None
    verdict: Verdict
    message: str = ""
    location: str = ""
    mode: str = ""
    expectation: str | None = None
    again: tuple[str, ...] = ()

    @property
    def breaks(self) -> bool:
        """Whether this case alone makes the change a regression."""
        return self.verdict is Verdict.REGRESSION and self.expectation is None


def is_bad(case: CaseResult) -> bool:
    """Whether the SUT failed a case."""
    return case.outcome in BAD and case.stale is UNSET


def judge_case(base: CaseResult | None, head: CaseResult | None, again: Sequence[CaseResult] = ()) -> Verdict:
    """Judge one case from its outcome on either side, and from second runs of the side that was bad.

    A case that is bad on head and was not there on base is a `regression`: nothing shows that it failed before.
    """
    if head is None:
        return Verdict.GONE_CASE
    if again and any(second.outcome is not _bad_side(base, head).outcome for second in again):
        return Verdict.INCONCLUSIVE
    sides = [side for side in (base, head) if side is not None]
    if any(side.outcome is Outcome.MEASURED_NOTHING for side in sides):
        return Verdict.MEASURED_NOTHING
    if any(side.outcome is Outcome.ERROR for side in sides):
        return Verdict.INCONCLUSIVE
    if base is None:
        return Verdict.REGRESSION if is_bad(head) else Verdict.NEW_CASE
    return _PAIRS[is_bad(base), is_bad(head)]


def _bad_side(base: CaseResult | None, head: CaseResult) -> CaseResult:
    return head if is_bad(head) or base is None else base


def judge_change(cases: Iterable[CaseVerdict], *, base_bytes: int, head_bytes: int) -> Verdict:
    """Judge the whole change from its cases and from the bytes that each side compared.

    A side that compared nothing cannot be called clean. A case that is gone may hide what it used to show, so it makes
    the change inconclusive; so does a case that nobody could ask. What failed before and still fails is no change.
    """
    cases = list(cases)
    if any(case.breaks for case in cases):
        return Verdict.REGRESSION
    seen = {case.verdict for case in cases}
    if not seen or base_bytes == 0 or head_bytes == 0:
        return Verdict.MEASURED_NOTHING
    if seen & {Verdict.INCONCLUSIVE, Verdict.GONE_CASE, Verdict.MEASURED_NOTHING}:
        return Verdict.INCONCLUSIVE
    return Verdict.FIXED if Verdict.FIXED in seen else Verdict.CLEAN


def exit_code_of(change: Verdict) -> int:
    """Return the exit code of a gate: 0 clean or fixed, 1 regression, 3 inconclusive, 4 measured nothing."""
    return _EXIT_CODES.get(change, CLEAN)
