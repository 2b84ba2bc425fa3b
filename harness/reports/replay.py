"""The known bugs and what the suites made of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from rich.text import Text

from harness.reports.plain import as_text
from harness.reports.terminal import console_for
from harness.sut.bugs import Bug
from harness.verdicts.replay import Seen

_STYLES = {Seen.CAUGHT: "green", Seen.MISSED: "bold red", Seen.FALSE_ALARM: "bold red", Seen.NOT_REPLAYABLE: "dim"}


@dataclass(frozen=True, slots=True)
class Replayed:
    """One bug: the verdict and why, the cases that showed it, the trees and the platform of the telling replay."""

    bug: Bug
    verdict: Seen
    why: str
    cases: tuple[str, ...]
    bad: str
    good: str
    platform: str

    def fields(self) -> dict[str, Any]:
        """The bug as JSON (docs/contract.md)."""
        return {
            "id": self.bug.id,
            "title": self.bug.title,
            "upstream": self.bug.upstream,
            "verdict": self.verdict,
            "bad": self.bad,
            "good": self.good,
            "platform": self.platform or self.bug.platforms,
            "cases": list(self.cases),
            "why": self.why,
        }


def show_replay(entries: Sequence[Replayed], stream: TextIO) -> None:
    """Print one block a bug, worst first, and the counts."""
    console = console_for(stream)
    order = [Seen.FALSE_ALARM, Seen.MISSED, Seen.CAUGHT, Seen.NOT_REPLAYABLE]
    for entry in sorted(entries, key=lambda entry: order.index(entry.verdict)):
        head = Text.assemble(
            (str(entry.verdict), _STYLES[entry.verdict]), as_text(f"  {entry.bug.id}: {entry.bug.title}")
        )
        console.print(head, soft_wrap=True)
        if entry.bad:
            console.print(as_text(f"    {entry.platform}: {entry.bad}, not {entry.good}"), soft_wrap=True)
        console.print(as_text(f"    {entry.why}"), soft_wrap=True)
        if entry.cases:
            console.print(as_text(f"    {len(entry.cases)} cases, first {entry.cases[0]}", "dim"), soft_wrap=True)
    counts = Counter(entry.verdict for entry in entries)
    needs = Counter(entry.bug.needs for entry in entries if entry.verdict is Seen.NOT_REPLAYABLE)
    reasons = f" ({', '.join(f'{need} {n}' for need, n in needs.items())})" if needs else ""
    summary = ", ".join(f"{seen} {counts[seen]}" for seen in (Seen.CAUGHT, Seen.MISSED, Seen.FALSE_ALARM))
    console.print(Text(f"\n{summary}, not replayable {counts[Seen.NOT_REPLAYABLE]}{reasons}"), soft_wrap=True)
