"""What a change did to each case, and to the whole: the rules of `poolparity gate`, as pure functions.

A case is *good* when it passed, or was refused clearly as the specification wants; it is *bad* when the SUT failed it.
What the harness could not ask (`error`) is neither, so nothing that depends on it is called a regression or a fix.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec

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
GOOD: Final = frozenset({Outcome.PASS, Outcome.UNSUPPORTED})


class CaseVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """One case on one platform: its outcome on either side (None: it did not run there) and what that means."""

    id: str
    platform: str
    base: str | None
    head: str | None
    verdict: Verdict
    message: str = ""
    location: str = ""


def judge_case(base: CaseResult | None, head: CaseResult | None, again: CaseResult | None = None) -> Verdict:
    """Judge one case; `again` is the second run of a case that was bad on head, in a fresh cell.

    A case that is bad on head and was not there on base is a `regression`: nothing shows that it failed before.
    """
    if head is None:
        return Verdict.GONE_CASE
    if again is not None and (again.outcome in BAD) != (head.outcome in BAD):
        return Verdict.INCONCLUSIVE
    if base is None:
        return Verdict.REGRESSION if head.outcome in BAD else _unasked(head) or Verdict.NEW_CASE
    if Outcome.MEASURED_NOTHING in (base.outcome, head.outcome):
        return Verdict.MEASURED_NOTHING
    if Outcome.ERROR in (base.outcome, head.outcome):
        return Verdict.INCONCLUSIVE
    return _PAIRS[base.outcome in BAD, head.outcome in BAD] if base.outcome in BAD | GOOD else Verdict.INCONCLUSIVE


_PAIRS: Final = {
    (False, False): Verdict.CLEAN,
    (False, True): Verdict.REGRESSION,
    (True, False): Verdict.FIXED,
    (True, True): Verdict.STILL_FAILING,
}


def _unasked(head: CaseResult) -> Verdict | None:
    if head.outcome is Outcome.ERROR:
        return Verdict.INCONCLUSIVE
    return Verdict.MEASURED_NOTHING if head.outcome is Outcome.MEASURED_NOTHING else None


def judge_change(verdicts: Iterable[Verdict], *, base_bytes: int, head_bytes: int) -> Verdict:
    """Judge the whole change from its cases and from the bytes that each side compared.

    A side that compared nothing cannot be called clean. A case that is gone may hide what it used to show, so it makes
    the change inconclusive; so does a case that nobody could ask.
    """
    seen = set(verdicts)
    if Verdict.REGRESSION in seen:
        return Verdict.REGRESSION
    if not seen or base_bytes == 0 or head_bytes == 0:
        return Verdict.MEASURED_NOTHING
    if seen & {Verdict.INCONCLUSIVE, Verdict.GONE_CASE, Verdict.MEASURED_NOTHING}:
        return Verdict.INCONCLUSIVE
    return Verdict.CLEAN
