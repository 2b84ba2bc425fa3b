"""One letter and one colour for each outcome: colour alone is lost in a log file and to some readers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from rich.text import Text

from harness.verdicts.outcomes import CaseResult, Outcome

EXPECTED = "expected"

LETTERS: Mapping[str, tuple[str, str, str]] = {
    # key: letter, colour, word
    Outcome.FAIL: ("F", "bold red", "fail"),
    Outcome.CRASH: ("C", "bold red", "crash"),
    Outcome.TIMEOUT: ("T", "bold red", "timeout"),
    Outcome.MEASURED_NOTHING: ("N", "bold magenta", "measured nothing"),
    Outcome.ERROR: ("E", "bold yellow", "error: could not ask"),
    EXPECTED: ("X", "cyan", "expected failure"),
    Outcome.PASS: ("P", "green", "pass"),
    Outcome.UNSUPPORTED: ("U", "dim", "unsupported"),
}


def kind(case: CaseResult) -> str:
    """Return the outcome of a case, or `expected` for one that an expectation covers."""
    return EXPECTED if case.expectation is not None else str(case.outcome)


def count(cases: Iterable[CaseResult]) -> dict[str, int]:
    """Count cases by kind, in the order of LETTERS; kinds that do not occur are left out."""
    found = Counter(kind(case) for case in cases)
    return {key: found[key] for key in LETTERS if found[key]}


def counts_text(counts: Mapping[str, int]) -> Text:
    """Show counts as `F 16  P 80`, in colour."""
    parts = [Text(f"{LETTERS[key][0]} {number}", style=LETTERS[key][1]) for key, number in counts.items()]
    return Text("  ").join(parts) if parts else Text("no cases", style="bold yellow")


def legend(keys: Iterable[str]) -> Text:
    """Explain the letters of the kinds that occur."""
    return Text("   ").join(Text(f"{LETTERS[key][0]} {LETTERS[key][2]}", style=LETTERS[key][1]) for key in keys)
