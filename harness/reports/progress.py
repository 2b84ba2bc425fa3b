"""What a person sees while cells run, on standard error: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from harness.reports.letters import EXPECTED, LETTERS, counts_text
from harness.reports.plain import as_text, plain

Event = dict[str, Any]


def stderr_console() -> Console:
    """Return the console for everything that is not a result."""
    return Console(file=sys.stderr, markup=False, highlight=False, emoji=False)


@dataclass(slots=True)
class CellState:
    """One cell as its events so far describe it."""

    name: str
    how: str = "waiting"
    ids: set[str] = field(default_factory=set)
    kinds: dict[str, str] = field(default_factory=dict)
    running: str = ""
    done: bool = False

    def update(self, event: Event) -> None:
        """Take in one event of the cell."""
        match event["event"]:
            case "prepared":
                self.how = f"{event['mode']}, {event['device']}"
            case "collected":
                self.ids.update(event["ids"])
            case "start":
                self.running = event["id"]
            case "outcome":
                self.kinds[event["id"]] = EXPECTED if event.get("expectation") else event["outcome"]
                self.running = ""
            case "finished":
                self.done, self.running = True, ""

    @property
    def counts(self) -> dict[str, int]:
        """Outcomes so far by kind, in the order of the letters."""
        found = Counter(self.kinds.values())
        return {key: found[key] for key in LETTERS if found[key]}


class Progress:
    """Follows cells; a context manager, so that the live table is gone before results are printed."""

    def __init__(self, names: Sequence[str], console: Console | None = None) -> None:
        self.console = console or stderr_console()
        self.states = [CellState(name) for name in names]
        self._live: AbstractContextManager[Any] = nullcontext()
        if self.console.is_terminal:
            self._live = Live(get_renderable=self._table, console=self.console, transient=True, refresh_per_second=8)

    def __enter__(self) -> Self:
        """Show the live table, on a terminal."""
        self._live.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        """Take the live table away."""
        self._live.__exit__(None, None, None)

    def on_event(self, cell: int, event: Event) -> None:
        """Take in one event of the cell with that index."""
        state = self.states[cell]
        state.update(event)
        if not self.console.is_terminal:
            self._say(state, event)

    def _say(self, state: CellState, event: Event) -> None:
        match event["event"]:
            case "collected":
                note(self.console, f"{state.name}: {state.how}: {len(state.ids)} cases")
            case "finished" if state.kinds:
                note(self.console, f"{state.name}: done: {counts_text(state.counts).plain}")

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 2))
        for state in self.states:
            total = len(state.ids) or "?"
            step = "done" if state.done else plain(state.running)
            table.add_row(
                as_text(state.name),
                Text(plain(state.how), style="dim"),
                Text(f"{len(state.kinds)}/{total}"),
                counts_text(state.counts) if state.kinds else Text(),
                Text(step, style="dim", overflow="ellipsis", no_wrap=True),
            )
        return table


def note(console: Console, text: str) -> None:
    """Print one plain line."""
    console.print(as_text(text), soft_wrap=True)
