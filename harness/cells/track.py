"""What the coordinator knows of one cell, from its events and from how its processes ended."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from harness.cells.events import FILE, Event, EventReader, EventWriter
from harness.cells.request import CellRequest
from harness.verdicts.outcomes import CaseResult, CellResult, Outcome

# A child that dies before it runs a case makes no progress: it gets one more try.
MAX_BARREN = 2
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
                self.running, self.barren = None, 0
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

    def ended(self, status: int) -> list[Event]:
        """Judge the end of a child; returns the outcomes that it owes, as events."""
        if self.finished:
            return []
        how, was_timeout = _how(status), self.timed_out
        self.timed_out = False
        if self.running is not None:
            outcome = Outcome.TIMEOUT if was_timeout else Outcome.CRASH
            message = f"did not end within {self.request.case_timeout_s:g} s" if was_timeout else how
            return [_owed(self.running, outcome, f"{message}; {self._log()}")]
        self.barren += 1
        return []

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
        path = self.folder / "output.log"
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


def _owed(case: str, outcome: Outcome, message: str) -> Event:
    suite = case.partition("/")[0] if "/" in case else ""
    result = CaseResult(id=case, suite=suite, outcome=outcome, message=message)
    return {"event": "outcome", **msgspec.to_builtins(result)}


def _how(status: int) -> str:
    if status < 0:
        return f"the process died of {signal.Signals(-status).name}"
    return f"the process ended itself with exit code {status} in the middle of the case"
