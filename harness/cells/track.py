"""What the coordinator knows of one cell, from its events and from how its processes ended."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from harness.cells.events import FILE, Event, EventReader, EventWriter
from harness.cells.log import LOG_FILE
from harness.cells.request import CellRequest
from harness.cells.trace import deepest, describe
from harness.verdicts.outcomes import CaseResult, CellResult, Outcome

# A child that dies before it runs a case makes no progress: it gets one more try.
MAX_BARREN = 2
# Deaths of one test function in a row, each in its child's first case and in the same way, after which its other cases
# are not run: each would cost a new child. They get `error`, because nobody asked them.
MAX_SAME_DEATHS = 5
_LOG_TAIL = 600


@dataclass(slots=True)
class Track:
    """One cell: its cases so far, the running one, and when it started (monotonic seconds)."""

    request: CellRequest
    folder: Path
    reader: EventReader
    started: float = field(default_factory=time.monotonic)
    attempt: float = 0.0
    ids: list[str] | None = None
    cases: dict[str, CaseResult] = field(default_factory=dict)
    running: str | None = None
    since: float = 0.0
    finished: bool = False
    barren: int = 0
    timed_out: bool = False
    victim: str | None = None
    first: bool = True
    deaths: list[tuple[str, str]] = field(default_factory=list)
    cut: str | None = None
    mode: str = "unknown"
    device: str = "unknown"
    stubbed: set[str] = field(default_factory=set)
    peak_rss_mb: float = 0.0

    @classmethod
    def begin(cls, request: CellRequest, folder: Path) -> Track:
        """Make the cell's folder and start its clock."""
        folder.mkdir(parents=True, exist_ok=True)
        return cls(request, folder, EventReader(folder / FILE))

    def take(self, event: Event) -> None:
        """Take in one event."""
        match event["event"]:
            case "prepared":
                self.mode, self.device = event["mode"], event["device"]
            case "collected":
                self.ids = list(dict.fromkeys([*(self.ids or ()), *event["ids"]]))
            case "start":
                self.running, self.since = event["id"], time.monotonic()
            case "outcome":
                case = msgspec.convert(event, type=CaseResult)
                self.cases[case.id] = case
                self.running, self.barren, self.first = None, 0, False
            case "finished":
                self.finished = True
                self.stubbed.update(event["stubbed"])

    @property
    def left(self) -> list[str]:
        """Ids without an outcome, in order."""
        return [i for i in self.ids or () if i not in self.cases]

    def overdue(self, now: float) -> bool:
        """Whether the running case, or the cell, has had its time."""
        if now - self.started > self.request.cell_timeout_s:
            self.cut = f"the cell had its {self.request.cell_timeout_s:g} s"
            return True
        since = self.since if self.running else max(self.attempt, self.since)
        return now - since > self.request.case_timeout_s + (0 if self.running else 60)

    def begin_child(self) -> None:
        """Start the clock of another child."""
        self.attempt = self.since = time.monotonic()
        self.timed_out, self.victim, self.running, self.first = False, None, None, True

    def kill(self) -> None:
        """Note that the child is being killed because it is overdue."""
        self.timed_out, self.victim = True, self.running

    def ended(self, status: int, stack: str) -> list[Event]:
        """Judge the end of a child; returns the outcomes that it owes, as events."""
        if self.finished:
            left = [] if self.request.collect_only or self.request.stop_at_red else self.left
            return [_owed(i, Outcome.ERROR, "the cell came to its end without running this case") for i in left]
        if self.running is None:
            self.barren += self.first
            return []
        if self.timed_out and self.victim != self.running:
            return []  # the late case ended just before the kill, which hit the next one: it runs again
        how, outcome = f"the process {describe(status)} in this case", Outcome.CRASH
        if self.timed_out:
            how, outcome = self.cut or f"did not end within {self.request.case_timeout_s:g} s", Outcome.TIMEOUT
        place = deepest(stack, self.request.sut.root)
        return [_owed(self.running, outcome, how, place, time.monotonic() - self.since), *self._spare(how + place)]

    def _spare(self, how: str) -> list[Event]:
        """The outcomes of a function's other cases, once enough of its cases have died, always first and the same."""
        function = (self.running or "").partition("[")[0]
        self.deaths = [death for death in self.deaths if self.first and death == (function, how)] + [(function, how)]
        if len(self.deaths) < MAX_SAME_DEATHS:
            return []
        why = (
            f"not run: {MAX_SAME_DEATHS} cases of {function} in a row ended their process in the same way; see the last"
        )
        others = [i for i in self.left if i != self.running and i.partition("[")[0] == function]
        return [_owed(i, Outcome.ERROR, why) for i in others]

    @property
    def given_up(self) -> bool:
        """Whether another child could not do better."""
        return self.cut is not None or self.barren >= MAX_BARREN

    def abandoned(self) -> list[Event]:
        """The outcomes of a cell that is given up: `error` for whatever has none, or for the cell itself."""
        why = self.cut or f"the cell's process ended {self.barren} times outside a case"
        message = f"{why}; expected it to run every case; {self._log()}"
        if self.ids is None:
            return [_owed(f"cell[{self.request.platform}]", Outcome.ERROR, message)]
        return [_owed(i, Outcome.ERROR, message) for i in self.left]

    def _log(self) -> str:
        path = self.folder / LOG_FILE
        text = path.read_text(errors="replace").strip() if path.is_file() else ""
        if not text:
            return "it printed nothing"
        return f"its output ends: {text[-_LOG_TAIL:]}"

    def result(self) -> CellResult:
        """The cell as reports show it, cases in the order of collection."""
        order = {i: n for n, i in enumerate(self.ids or ())}
        return CellResult(
            sut=self.request.sut.name,
            platform=self.request.platform,
            mode=self.mode,
            device=self.device,
            seconds=round(time.monotonic() - self.started, 3),
            peak_rss_mb=self.peak_rss_mb,
            stubbed=sorted(self.stubbed),
            cases=sorted(self.cases.values(), key=lambda case: order.get(case.id, len(order))),
        )

    def record(self, events: list[Event]) -> None:
        """Append the coordinator's own events to the cell's file."""
        writer = EventWriter(self.folder / FILE)
        for event in events:
            writer.write(event)
        writer.close()


def _owed(case: str, outcome: Outcome, message: str, location: str = "", seconds: float = 0.0) -> Event:
    suite = case.partition("/")[0] if "/" in case else ""
    result = CaseResult(
        id=case, suite=suite, outcome=outcome, message=message, location=location, seconds=round(seconds, 3)
    )
    return {"event": "outcome", **msgspec.to_builtins(result)}
