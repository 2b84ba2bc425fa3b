"""Where a case changed, for a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from rich.text import Text

from harness.reports.plain import as_text
from harness.reports.terminal import console_for, cut
from harness.verdicts.bisect import Answer
from harness.verdicts.outcomes import CaseResult

_SUSPECTS = 12


@dataclass(frozen=True, slots=True)
class Found:
    """The answer, the case's last result at each point, and the SUT's files that it ran and that changed."""

    case: str
    platform: str
    answer: Answer
    results: Mapping[str, CaseResult]
    suspects: Sequence[str]

    @property
    def failing(self) -> CaseResult:
        """The case where it fails, nearest to the change."""
        return self.results[self.answer.first if self.answer.fails_at_new else self.answer.before]

    def fields(self) -> dict[str, Any]:
        """The answer as JSON (docs/contract.md); a fix has `first_good` and `last_bad` in place of the other two."""
        broke = self.answer.fails_at_new
        return {
            "case": self.case,
            "platform": self.platform,
            "change": "broke" if broke else "fixed",
            "first_bad": self.answer.first if broke else None,
            "last_good": self.answer.before if broke else None,
            "first_good": None if broke else self.answer.first,
            "last_bad": None if broke else self.answer.before,
            "confidence": round(self.answer.confidence, 4),
            "skipped": list(self.answer.skipped),
            "message": self.failing.message,
            "location": self.failing.location,
            "changed_files": list(self.suspects),
        }


def show_bisect(found: Found, stream: TextIO) -> None:
    """Print the answer, its confidence, the failure, and where to look."""
    console = console_for(stream)
    answer = found.answer
    word, style = ("broke", "bold red") if answer.fails_at_new else ("was fixed", "bold green")
    head = Text.assemble(as_text(f"{found.case} on {found.platform} "), (word, style), as_text(f" at {answer.first}"))
    console.print(head, soft_wrap=True)
    before = "passes" if answer.fails_at_new else "fails"
    console.print(as_text(f"  {before} on {answer.before}; confidence {answer.confidence:.1%}"), soft_wrap=True)
    for point in answer.skipped:
        console.print(as_text(f"  or at {point}, which could not be asked", "yellow"), soft_wrap=True)
    where = f"{found.failing.location}: " if found.failing.location else ""
    for line in cut(where + found.failing.message):
        console.print(as_text(f"    {line}"), soft_wrap=True)
    if found.suspects:
        console.print(Text("  files that the case ran and that changed:"), soft_wrap=True)
    for name in found.suspects[:_SUSPECTS]:
        console.print(as_text(f"    {name}"), soft_wrap=True)
    if len(found.suspects) > _SUSPECTS:
        console.print(Text(f"    … and {len(found.suspects) - _SUSPECTS} more"), soft_wrap=True)
