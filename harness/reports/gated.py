"""The answer of a gate: base beside head, case by case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import UNSET

from harness.reports.groups import shape
from harness.sut.spec import SutTree
from harness.verdicts.gate import CaseVerdict, Verdict, judge_change
from harness.verdicts.outcomes import CaseResult, CellResult

STYLES = {
    Verdict.REGRESSION: "bold red",
    Verdict.INCONCLUSIVE: "bold yellow",
    Verdict.MEASURED_NOTHING: "bold magenta",
    Verdict.GONE_CASE: "yellow",
    Verdict.FIXED: "bold green",
    Verdict.STILL_FAILING: "red",
    Verdict.NEW_CASE: "cyan",
    Verdict.CLEAN: "green",
}


@dataclass(slots=True)
class Gated:
    """Every case of a gate with its verdict, and the bytes that either side compared."""

    base: SutTree
    head: SutTree
    cases: list[CaseVerdict] = field(default_factory=list)
    base_bytes: int = 0
    head_bytes: int = 0
    stale: set[str] = field(default_factory=set)
    expected: dict[str, set[str]] = field(default_factory=lambda: {"base": set(), "head": set()})

    def add_cells(self, base: CellResult, head: CellResult) -> None:
        """Count the bytes of a pair of cells."""
        self.base_bytes += sum(case.bytes_compared for case in base.cases)
        self.head_bytes += sum(case.bytes_compared for case in head.cases)

    def add_case(
        self,
        base: CaseResult | None,
        head: CaseResult | None,
        verdict: Verdict,
        again: Sequence[CaseResult],
        cell: CellResult,
    ) -> None:
        """Take in one case; the message is head's where head has one to give, else base's."""
        for side, case in (("base", base), ("head", head)):
            if case is not None and case.expectation is not None:
                self.expected[side].add(case.expectation)
            if case is not None and case.stale is not UNSET:
                self.stale.add(case.stale)
        speaker = base if head is None or (verdict is Verdict.FIXED and base is not None) else head
        message, location = (speaker.message, speaker.location) if speaker is not None else ("", "")
        second = tuple(str(case.outcome) for case in again)
        if verdict is Verdict.INCONCLUSIVE and second:
            message = f"a second run in a fresh cell was {', '.join(second)}, the first: {message or 'pass'}"
        self.cases.append(
            CaseVerdict(
                id=(head or base).id,  # type: ignore[union-attr]  # one of the two is there
                platform=cell.platform,
                mode=cell.mode,
                base=str(base.outcome) if base is not None else None,
                head=str(head.outcome) if head is not None else None,
                verdict=verdict,
                message=message,
                location=location,
                expectation=speaker.expectation if speaker is not None else None,
                again=second,
            )
        )

    @property
    def verdict(self) -> Verdict:
        """The verdict on the change."""
        return judge_change(self.cases, base_bytes=self.base_bytes, head_bytes=self.head_bytes)

    @property
    def changed_expectations(self) -> dict[str, list[str]]:
        """Expectations that excused a failure on one side only, and those that head makes stale."""
        base, head = self.expected["base"], self.expected["head"]
        return {"base_only": sorted(base - head), "head_only": sorted(head - base), "stale": sorted(self.stale)}

    def notable(self) -> list[Folded]:
        """Everything but `clean`, folded by verdict, place and message, worst first."""
        return fold(case for case in self.cases if case.verdict is not Verdict.CLEAN)

    def counts(self, platform: str | None = None) -> dict[Verdict, int]:
        """Cases of a platform (or of all) by verdict, worst first."""
        found = Counter(case.verdict for case in self.cases if platform in (None, case.platform))
        return {verdict: found[verdict] for verdict in STYLES if found[verdict]}

    @property
    def platforms(self) -> list[str]:
        """The platforms, in the order in which they were asked for."""
        return list(dict.fromkeys(case.platform for case in self.cases))

    def fields(self) -> dict[str, Any]:
        """The fields of the JSON object (docs/contract.md)."""
        return {
            "verdict": self.verdict,
            "base": self.base.name,
            "head": self.head.name,
            "base_identity": self.base.identity,
            "head_identity": self.head.identity,
            "base_bytes": self.base_bytes,
            "head_bytes": self.head_bytes,
            "expectations": self.changed_expectations,
            "cases": msgspec.to_builtins(self.cases),
        }


@dataclass(slots=True)
class Folded:
    """Cases with one verdict that say the same. `ids` are those of all platforms, without repetition."""

    verdict: Verdict
    message: str
    location: str
    expectation: str | None
    platforms: Counter[str] = field(default_factory=Counter)
    ids: dict[str, None] = field(default_factory=dict)
    steps: Counter[str] = field(default_factory=Counter)

    @property
    def title(self) -> str:
        """The verdict in words, with what excuses it."""
        return f"{self.verdict} (expected: {self.expectation})" if self.expectation else str(self.verdict)

    @property
    def step(self) -> str:
        """The outcomes on either side: `base pass (36), unsupported (3) -> head fail`."""
        return ", ".join(f"{step} ({n})" for step, n in self.steps.items())


def fold(cases: Iterable[CaseVerdict]) -> list[Folded]:
    """Fold cases that say the same: one place where there is one, else one message but for its numbers.

    Regressions are told apart by both: they are what somebody has to look at.
    """
    found: dict[tuple[Any, ...], Folded] = {}
    for case in cases:
        close = case.verdict in (Verdict.REGRESSION, Verdict.INCONCLUSIVE) or not case.location
        alike = case.expectation or (case.location, shape(case.message) if close else "")
        entry = found.setdefault(
            (case.verdict, alike), Folded(case.verdict, case.message, case.location, case.expectation)
        )
        entry.platforms[case.platform] += 1
        entry.steps[f"base {case.base or 'absent'} -> head {case.head or 'absent'}"] += 1
        entry.ids[case.id] = None
    order = list(STYLES)
    return sorted(found.values(), key=lambda entry: (order.index(entry.verdict), entry.expectation is not None))


def expectation_lines(gated: Gated) -> list[str]:
    """Sentences on the expectations that differ between base and head."""
    words = {
        "base_only": "the expectation {} excused a failure on base only",
        "head_only": "the expectation {} excuses a failure on head only",
        "stale": "the expectation {} no longer fails: remove it, or bound it by version",
    }
    return [words[key].format(id_) for key, ids in gated.changed_expectations.items() for id_ in ids]
