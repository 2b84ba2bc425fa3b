"""Did the suites see a known bug where it is, and not where it is not: pure rules of `poolparity replay`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum

from harness.verdicts.exit_code import CLEAN, MEASURED_NOTHING, RED
from harness.verdicts.gate import is_bad
from harness.verdicts.outcomes import CaseResult


class Seen(StrEnum):
    """The verdict on a bug (docs/contract.md), the worst last."""

    NOT_REPLAYABLE = "not-replayable"
    CAUGHT = "caught"
    MISSED = "missed"
    FALSE_ALARM = "false-alarm"


def symptomatic(cases: Iterable[CaseResult], symptom: str) -> list[CaseResult]:
    """Return the cases that failed as the bug makes them fail."""
    return [case for case in cases if is_bad(case) and re.search(symptom, case.message)]


def judge(bad: Iterable[CaseResult], good: Iterable[CaseResult], symptom: str) -> tuple[Seen, str]:
    """Judge one replay from the bug's cases on a tree that has it and on one that has not; with the reason.

    On the good tree the cases must run and show no such symptom: what was never asked there is no proof.
    """
    bad, good = list(bad), list(good)
    if not bad or not good:
        side = "bad" if not bad else "good"
        return Seen.MISSED, f"no case of the bug is there on the {side} tree; expected its patterns to match some"
    alarms = symptomatic(good, symptom)
    if alarms:
        return Seen.FALSE_ALARM, f"{alarms[0].id} fails so on the good tree too: {alarms[0].message.splitlines()[0]}"
    seen = symptomatic(bad, symptom)
    if not seen:
        others = sorted({str(case.outcome) for case in bad})
        return Seen.MISSED, f"none of {len(bad)} cases fails with {symptom!r} on the bad tree ({', '.join(others)})"
    return Seen.CAUGHT, seen[0].message.splitlines()[0]


def worst(verdicts: Iterable[Seen]) -> Seen:
    """Return the verdict on a bug from those on its platforms."""
    order = list(Seen)
    return max(verdicts, key=order.index, default=Seen.NOT_REPLAYABLE)


def exit_code_of(verdicts: Iterable[Seen]) -> int:
    """Return 0 when all that can be replayed was caught, 1 otherwise, 4 when nothing was replayed."""
    asked = [verdict for verdict in verdicts if verdict is not Seen.NOT_REPLAYABLE]
    if not asked:
        return MEASURED_NOTHING
    return CLEAN if all(verdict is Seen.CAUGHT for verdict in asked) else RED
