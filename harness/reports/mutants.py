"""What the suites killed, for a person: kills per operator, then everything that needs a look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.reports.plain import as_text
from harness.reports.terminal import console_for
from harness.verdicts.mutants import Fate, MutantResult, killed_share

_STYLES = {
    Fate.KILLED: "green",
    Fate.SURVIVED: "bold red",
    Fate.EQUIVALENT: "dim",
    Fate.NOT_APPLICABLE: "bold yellow",
}


def show_mutants(results: Sequence[MutantResult], stream: TextIO) -> None:
    """Print the table of operators, the survivors with their diffs, and the share that was killed."""
    console = console_for(stream)
    table = Table("operator", *map(str, _STYLES))
    for operator in dict.fromkeys(r.operator for r in results):
        counts = Counter(r.outcome for r in results if r.operator == operator)
        table.add_row(operator, *(str(counts[fate] or "") for fate in _STYLES))
    console.print(table)
    for result in results:
        if result.outcome in (Fate.SURVIVED, Fate.NOT_APPLICABLE) or result.wrongly_marked or result.named:
            _show(result, console)
    console.print(Text(f"\nkilled: {killed_share(results):.1%} of those that are not equivalent"), soft_wrap=True)


def _show(result: MutantResult, console: Console) -> None:
    style = _STYLES[result.outcome]
    console.print(Text.assemble("\n", (str(result.outcome), style), as_text(f"  {result.name}")), soft_wrap=True)
    if result.wrongly_marked:
        console.print(Text("    marked equivalent, and killed: remove the mark", style="bold red"), soft_wrap=True)
    if result.killed_by:
        console.print(as_text(f"    by {result.killed_by}"), soft_wrap=True)
    for line in (result.diff or result.why).splitlines()[:12]:
        console.print(as_text(f"    {line}"), soft_wrap=True)
