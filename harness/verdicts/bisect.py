"""Where a case changed between two ends of a line of releases or commits: pure search and pure statistics.

A point is asked until the posterior of "like the old end" or "like the new end" passes a threshold (Bayes' rule on
independent runs, with the failure rates seen at the two ends). A point that cannot be asked is skipped, as `git bisect
skip` does: the search goes on around it, and only skipped points may be left between the two that it names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from harness.errors import UsageError
from harness.verdicts.outcomes import Outcome

FAILED: Final = frozenset({Outcome.FAIL, Outcome.CRASH, Outcome.TIMEOUT})
PASSED: Final = frozenset({Outcome.PASS, Outcome.UNSUPPORTED})

END_RUNS: Final = 3
MAX_RUNS: Final = 40
# No finite number of runs shows a rate of 0 or 1: a case that always failed is taken to fail 99.5 % of the time.
_FLOOR: Final = 0.005

Ask = Callable[[str, int], Sequence[Outcome]]
"""(point, runs) -> the outcome of each run."""


class Line(Protocol):
    """Points between two ends, from old to new. Points are SUT strings."""

    @property
    def old(self) -> str:
        """The old end."""

    @property
    def new(self) -> str:
        """The new end."""

    def middle(self, olds: Sequence[str], new: str, skipped: Sequence[str]) -> str | None:
        """Return the point that halves what is left once `olds` are known to be old and `new` new; None: none is left.

        Of the points that are not known, those in `skipped` cannot be chosen.
        """

    def left(self, olds: Sequence[str], new: str) -> Sequence[str]:
        """Return the points that may be the first new one, `new` itself not among them."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The first point that is like the new end, the last known one like the old end, and how sure that is.

    `fails_at_new` says which of the ends fails. The change lies at `first` or at one of `skipped`, which could not be
    asked.
    """

    first: str
    before: str
    confidence: float
    fails_at_new: bool
    skipped: tuple[str, ...]


def _clipped(rate: float) -> float:
    return min(max(rate, _FLOOR), 1 - _FLOOR)


def posterior_failing(failures: int, passes: int, *, rate_if_failing: float, rate_if_passing: float) -> float:
    """Probability that a point is of the failing kind, from its runs and each kind's failure rate; prior one half."""
    a, b = _clipped(rate_if_failing), _clipped(rate_if_passing)
    failing = a**failures * (1 - a) ** passes
    passing = b**failures * (1 - b) ** passes
    return failing / (failing + passing)


class _Search:
    def __init__(self, line: Line, ask: Ask, threshold: float) -> None:
        self.ask = ask
        self.threshold = threshold
        self.failing: dict[str, float] = {}
        rates = {end: self._rate(end) for end in (line.old, line.new)}
        self.if_passing, self.if_failing = sorted(rates.values())
        if self.if_failing - self.if_passing < 1 / END_RUNS:
            kind = "fails" if self.if_failing > 1 / 2 else "passes"
            msg = (
                f"the case {kind} at both ends ({line.old}: {rates[line.old]:.0%} of its runs failed, {line.new}: "
                f"{rates[line.new]:.0%}); expected one end where it passes and one where it fails; choose other ends"
            )
            raise UsageError(msg)
        for end, rate in rates.items():
            failures = round(rate * END_RUNS)
            self.failing[end] = self._posterior(failures, END_RUNS - failures)

    def _posterior(self, failures: int, passes: int) -> float:
        return posterior_failing(failures, passes, rate_if_failing=self.if_failing, rate_if_passing=self.if_passing)

    def _rate(self, end: str) -> float:
        outcomes = self.ask(end, END_RUNS)
        unasked = next((o for o in outcomes if o not in FAILED | PASSED), None)
        if unasked is not None or not outcomes:
            msg = (
                f"{end} cannot be asked: its outcome is {unasked or 'none'}; expected pass or fail; choose another end"
            )
            raise UsageError(msg)
        return sum(o in FAILED for o in outcomes) / len(outcomes)

    def settle(self, point: str) -> bool | None:
        """Whether a point is of the failing kind; None when it cannot be asked or does not settle."""
        failures = passes = 0
        for _ in range(MAX_RUNS):
            outcomes = self.ask(point, 1)
            if not outcomes or outcomes[0] not in FAILED | PASSED:
                return None
            failures, passes = failures + (outcomes[0] in FAILED), passes + (outcomes[0] in PASSED)
            self.failing[point] = self._posterior(failures, passes)
            if self.sure(point) >= self.threshold:
                return self.failing[point] > 1 / 2
        return None

    def sure(self, point: str) -> float:
        """Probability that a point is of the kind that it is taken for."""
        return max(self.failing[point], 1 - self.failing[point])


def bisect(line: Line, ask: Ask, *, threshold: float = 0.99) -> Answer:
    """Find where the outcome of `ask` changes its kind along a line.

    Raises UsageError when both ends are alike or one cannot be asked.
    """
    search = _Search(line, ask, threshold)
    old_fails = search.failing[line.old] > 1 / 2
    olds, new, skipped = [line.old], line.new, list[str]()
    while (point := line.middle(olds, new, skipped)) is not None:
        kind = search.settle(point)
        if kind is None:
            skipped.append(point)
        elif kind is old_fails:
            olds.append(point)
        else:
            new = point
    left = [point for point in line.left(olds, new) if point in skipped]
    return Answer(new, olds[-1], search.sure(olds[-1]) * search.sure(new), not old_fails, tuple(left))


@dataclass(frozen=True, slots=True)
class Straight:
    """A line in which every point has one predecessor: releases."""

    points: tuple[str, ...]

    @property
    def old(self) -> str:
        """The first point."""
        return self.points[0]

    @property
    def new(self) -> str:
        """The last point."""
        return self.points[-1]

    def left(self, olds: Sequence[str], new: str) -> Sequence[str]:
        """Return the points after the last old one and before `new`."""
        return self.points[max(map(self.points.index, olds)) + 1 : self.points.index(new)]

    def middle(self, olds: Sequence[str], new: str, skipped: Sequence[str]) -> str | None:
        """Return the point nearest to the middle."""
        left = self.left(olds, new)
        middle = (len(left) - 1) / 2
        chosen = [(abs(i - middle), point) for i, point in enumerate(left) if point not in skipped]
        return min(chosen, default=(0, None))[1]
