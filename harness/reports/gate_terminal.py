"""The answer of a gate for a person: counts by platform, what is notable, what each side measured, the verdict."""

from __future__ import annotations

from itertools import islice
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.reports.gated import STYLES, Folded, Gated, expectation_lines
from harness.reports.plain import as_text, plain
from harness.reports.terminal import console_for, cut

_IDS = 4


def show_gate(gated: Gated, stream: TextIO) -> None:
    """Print a gate's answer to `stream`."""
    console = console_for(stream)
    columns = list(gated.counts())
    table = Table("platform")
    for verdict in columns:
        table.add_column(as_text(str(verdict), STYLES[verdict]))
    for platform in gated.platforms:
        counts = gated.counts(platform)
        table.add_row(platform, *(Text(str(counts.get(v, "")), style=STYLES[v]) for v in columns))
    console.print(table)
    for entry in gated.notable():
        _show(entry, console)
    for line in expectation_lines(gated):
        console.print(as_text(line, "cyan"), soft_wrap=True)
    sizes = f"bytes compared: base {gated.base_bytes:,}, head {gated.head_bytes:,}"
    console.print(Text(f"\n{sizes}"), soft_wrap=True)
    answer = (str(gated.verdict), STYLES[gated.verdict])
    console.print(Text.assemble(as_text(f"{gated.base.name} -> {gated.head.name}: "), answer), soft_wrap=True)


def _show(entry: Folded, console: Console) -> None:
    where = f"  {plain(entry.location)}" if entry.location else ""
    title = (plain(entry.title), STYLES[entry.verdict])
    console.print(Text.assemble("\n", title, f" x{sum(entry.platforms.values())}", (where, "bold")), soft_wrap=True)
    for text in cut(entry.message) if entry.message else ():
        console.print(Text.assemble("    ", as_text(text)), soft_wrap=True)
    platforms = ", ".join(f"{name} ({n})" for name, n in entry.platforms.items())
    console.print(Text(f"  on {platforms}; {entry.step}"), soft_wrap=True)
    for id_ in islice(entry.ids, _IDS):
        console.print(Text.assemble("    ", as_text(id_, "dim")), soft_wrap=True)
    if len(entry.ids) > _IDS:
        console.print(Text(f"    … and {len(entry.ids) - _IDS} more", style="dim"))
