"""What a gate would have said on each change of the story."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from rich.text import Text

from harness.reports.gated import STYLES, Folded, Gated, fold
from harness.reports.plain import as_text
from harness.reports.terminal import console_for
from harness.verdicts.gate import CaseVerdict, Verdict


@dataclass(frozen=True, slots=True)
class Chapter:
    """One change: its gate, and the gate of its tree against the story's beginning."""

    change: str
    what: str
    gated: Gated
    since_start: Gated

    def said(self) -> Iterator[tuple[Verdict, Folded]]:
        """Yield what the change broke, what it repaired, and what was broken before it and still is."""
        verdicts = {(case.platform, case.id): case.verdict for case in self.gated.cases}
        changed = (Verdict.REGRESSION, Verdict.FIXED, Verdict.INCONCLUSIVE, Verdict.GONE_CASE)
        for entry in _folded(case for case in self.gated.cases if case.verdict in changed):
            yield entry.verdict, entry
        broken = (
            case
            for case in self.since_start.cases
            if case.verdict is Verdict.REGRESSION and verdicts[case.platform, case.id] is Verdict.STILL_FAILING
        )
        for entry in _folded(broken):
            yield Verdict.STILL_FAILING, entry

    def fields(self) -> dict[str, Any]:
        """The step as JSON."""
        said = [
            {
                "verdict": verdict,
                "platforms": dict(entry.platforms),
                "message": entry.message,
                "location": entry.location,
            }
            for verdict, entry in self.said()
        ]
        return {"change": self.change, "what": self.what, "verdict": self.gated.verdict, "said": said}


def _folded(cases: Iterator[CaseVerdict]) -> list[Folded]:
    """Fold by the first line of the message alone: one bug is one line, wherever it was met."""
    found: dict[tuple[Verdict, str], list[CaseVerdict]] = {}
    for case in cases:
        if case.expectation is None:
            found.setdefault((case.verdict, case.message.partition("\n")[0]), []).append(case)
    entries = []
    for group in found.values():
        first = fold(group[:1])[0]
        first.platforms.clear()
        first.platforms.update(case.platform for case in group)
        entries.append(first)
    return entries


def show_story(chapters: Sequence[Chapter], stream: TextIO) -> None:
    """Print a row for each change, and under it what the harness would have said."""
    console = console_for(stream)
    for chapter in chapters:
        verdict = chapter.gated.verdict
        title = Text.assemble((chapter.change, "bold"), f"  {chapter.what}: ", (str(verdict), STYLES[verdict]))
        console.print(title, soft_wrap=True)
        for kind, entry in chapter.said():
            platforms = ", ".join(f"{name} ({n})" for name, n in entry.platforms.items())
            console.print(Text.assemble("  ", (str(kind), STYLES[kind]), f" on {platforms}"), soft_wrap=True)
            where = f" ({entry.location})" if entry.location else ""
            message = entry.message.partition("\n")[0]
            console.print(Text.assemble("    ", as_text(f"{message}{where}")), soft_wrap=True)
        console.print()
