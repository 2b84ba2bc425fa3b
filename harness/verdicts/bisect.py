"""Where a case changed between two ends of a line of releases or commits: pure search and pure statistics.

A point is asked until the posterior of "like the first end" or "like the last end" passes a threshold (Bayes' rule on
independent runs, with the failure rates seen at the two ends). A point that cannot be asked is skipped, as `git bisect
skip` does: the search goes on around it, and the answer is a range if only skipped points lie in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from harness.errors import UsageError
from harness.verdicts.outcomes import Outcome

FAILED: Final = frozenset({Outcome.FAIL, Outcome.CRASH, Outcome.TIMEOUT})
PASSED: Final = frozenset({Outcome.PASS, Outcome.UNSUPPORTED})

END_RUNS: Final = 3
MAX_RUNS: Final = 40
# No finite number of runs shows a rate of 0 or 1: a case that always failed is taken to fail 99.5 % of the time.
_FLOOR: Final = 0.005

Ask = Callable[[int], Outcome]


@dataclass(frozen=True, slots=True)
class Answer:
    """The first point that is like the last end, the point before it that is like the first end, and how sure that is.

    `skipped` are the points between the two that could not be asked: the change lies at `first` or at one of them.
    """

    first: int
    before: int
    confidence: float
    skipped: tuple[int, ...]


def _clipped(rate: float) -> float:
    return min(max(rate, _FLOOR), 1 - _FLOOR)


def posterior_failing(failures: int, passes: int, *, rate_if_failing: float, rate_if_passing: float) -> float:
    """Probability that a point is of the failing kind, from its runs and each kind's failure rate; prior one half."""
    a, b = _clipped(rate_if_failing), _clipped(rate_if_passing)
    failing = a**failures * (1 - a) ** passes
    passing = b**failures * (1 - b) ** passes
    return failing / (failing + passing)


class _Search:
    def __init__(self, count: int, ask: Ask, threshold: float) -> None:
        self.ask = ask
        self.threshold = threshold
        self.failing: dict[int, float] = {}
        self.rates = {end: self._rate(end) for end in (0, count - 1)}
        low, high = sorted(self.rates.values())
        if high - low < 1 / END_RUNS:
            kind = "fails" if high > 1 / 2 else "passes"
            msg = (
                f"the case {kind} at both ends (failure rates {self.rates[0]:.2f} and {self.rates[count - 1]:.2f}); "
                "expected one end where it passes and one where it fails; check which is --good and which is --bad"
            )
            raise UsageError(msg)
        self.if_failing, self.if_passing = high, low
        for end, rate in self.rates.items():
            self.failing[end] = self._posterior(round(rate * END_RUNS), END_RUNS - round(rate * END_RUNS))

    def _posterior(self, failures: int, passes: int) -> float:
        return posterior_failing(failures, passes, rate_if_failing=self.if_failing, rate_if_passing=self.if_passing)

    def _rate(self, end: int) -> float:
        outcomes = [self.ask(end) for _ in range(END_RUNS)]
        if any(o not in FAILED | PASSED for o in outcomes):
            unasked = next(o for o in outcomes if o not in FAILED | PASSED)
            msg = (
                f"an end of the line cannot be asked: its outcome is {unasked.value}; choose another release or commit"
            )
            raise UsageError(msg)
        return sum(o in FAILED for o in outcomes) / END_RUNS

    def settle(self, point: int) -> bool | None:
        """Whether a point is of the failing kind; None when it cannot be asked or does not settle."""
        failures = passes = 0
        for _ in range(MAX_RUNS):
            outcome = self.ask(point)
            if outcome not in FAILED | PASSED:
                return None
            failures, passes = failures + (outcome in FAILED), passes + (outcome in PASSED)
            self.failing[point] = self._posterior(failures, passes)
            if max(self.failing[point], 1 - self.failing[point]) >= self.threshold:
                return self.failing[point] > 1 / 2
        return None


def bisect(count: int, ask: Ask, *, threshold: float = 0.99) -> Answer:
    """Find where `ask(0..count-1)` changes its kind of outcome.

    Raises UsageError when fewer than two points are given, or when both ends are alike or cannot be asked.
    """
    if count < 2:  # noqa: PLR2004 - two ends
        msg = f"found {count} points between the two ends; expected at least two; --good and --bad must differ"
        raise UsageError(msg)
    search = _Search(count, ask, threshold)
    first_kind = search.failing[0] > 1 / 2
    low, high, skipped = 0, count - 1, set[int]()
    while (point := _middle(low, high, skipped)) is not None:
        kind = search.settle(point)
        if kind is None:
            skipped.add(point)
        elif kind is first_kind:
            low = point
        else:
            high = point
    sure = [max(p, 1 - p) for p in (search.failing[low], search.failing[high])]
    return Answer(high, low, sure[0] * sure[1], tuple(sorted(p for p in skipped if low < p < high)))


def _middle(low: int, high: int, skipped: set[int]) -> int | None:
    open_points: Sequence[int] = [p for p in range(low + 1, high) if p not in skipped]
    return min(open_points, key=lambda p: abs(2 * p - low - high), default=None)
