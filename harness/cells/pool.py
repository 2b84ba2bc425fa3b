"""The coordinator: keeps as many cells running as there are jobs, and gives every case an outcome.

A case whose process dies or hangs gets `crash` or `timeout`; the rest of its cell runs in a new child.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from harness.cells import wire
from harness.cells.events import Event
from harness.cells.request import CellRequest, Command, Ended, Kill, Start, folder_name
from harness.cells.track import Track
from harness.errors import InfrastructureError
from harness.verdicts.outcomes import CellResult

OnEvent = Callable[[int, Event], None]

_TICK_S = 0.03
_STOP_S = 5.0


class _ServerProcess:
    """The cell server as a child of this process, and the two pipes to it."""

    def __enter__(self) -> Self:
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "PYTHONSAFEPATH": "1",
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        }
        environment["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(p for p in _own_path() if p))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "harness.cells.server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env=environment,
        )
        self._pending = b""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def send(self, command: Command) -> None:
        """Send one command; InfrastructureError when the server is gone."""
        try:
            os.write(self._fileno(self.process.stdin), wire.encode(command))
        except BrokenPipeError as reason:
            raise self._gone() from reason

    def answers(self, timeout: float) -> list[Ended]:
        """Wait up to `timeout` seconds and return what has come."""
        fd = self._fileno(self.process.stdout)
        if not select.select([fd], [], [], timeout)[0]:
            return []
        data = os.read(fd, 1 << 16)
        if not data:
            raise self._gone()
        *lines, self._pending = (self._pending + data).split(b"\n")
        return [msgspec.json.decode(line, type=Ended) for line in lines]

    @staticmethod
    def _fileno(stream: object) -> int:
        number: int = stream.fileno()  # type: ignore[attr-defined]  # both streams are pipes
        return number

    def _gone(self) -> InfrastructureError:
        msg = (
            f"the cell server ended with code {self.process.wait()}; expected it to run until the last cell; "
            "its messages are above; is torch installed, and is there memory?"
        )
        return InfrastructureError(msg)


def _own_path() -> list[str]:
    """Have the server import the same harness as we do, wherever that lies."""
    return [str(Path(__file__).resolve().parents[2]), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]


class _Coordinator:
    def __init__(self, requests: Sequence[CellRequest], jobs: int, out: Path, on_event: OnEvent) -> None:
        self.tracks = [Track.begin(r, out / "cells" / folder_name(n, r)) for n, r in enumerate(requests)]
        self.waiting = deque(range(len(requests)))
        self.running: set[int] = set()
        self.jobs = jobs
        self.on_event = on_event

    def run(self, server: _ServerProcess) -> list[CellResult]:
        results: dict[int, CellResult] = {}
        while self.waiting or self.running:
            while self.waiting and len(self.running) < self.jobs:
                self._start(server, self.waiting.popleft())
            ended = server.answers(_TICK_S)
            for key in sorted(self.running):
                self._follow(key)
            for answer in ended:
                if self._judge_end(server, answer):
                    results[answer.key] = self.tracks[answer.key].result()
            self._watch_clocks(server)
        return [results[key] for key in range(len(self.tracks))]

    def _start(self, server: _ServerProcess, key: int) -> None:
        track = self.tracks[key]
        if not track.cases and track.attempt == 0.0:
            track.started = time.monotonic()
        track.begin_child()
        self.running.add(key)
        server.send(Start(key=key, request=track.request, folder=track.folder, done=tuple(track.cases)))

    def _follow(self, key: int) -> None:
        track = self.tracks[key]
        for event in track.reader.new():
            track.take(event)
            self.on_event(key, event)

    def _judge_end(self, server: _ServerProcess, answer: Ended) -> bool:
        """Whether the cell is done; else the rest of it goes on in a new child."""
        track = self.tracks[answer.key]
        self._follow(answer.key)
        self.running.discard(answer.key)
        track.peak_rss_mb = max(track.peak_rss_mb, answer.peak_rss_mb)
        track.reader.cut()
        track.record(track.ended(answer.status, answer.stack))
        self._follow(answer.key)
        if not track.finished and track.given_up:
            track.record(track.abandoned())
        elif not track.finished and (track.ids is None or track.left):
            self._start(server, answer.key)
            return False
        if not track.finished:  # its last child died, and nothing is left for another one
            track.record([{"event": "finished", "stubbed": sorted(track.stubbed)}])
        self._follow(answer.key)
        return True

    def _watch_clocks(self, server: _ServerProcess) -> None:
        now = time.monotonic()
        for key in self.running:
            track = self.tracks[key]
            if not track.timed_out and track.overdue(now):
                track.kill()
                server.send(Kill(key=key))


def run_cells(requests: Sequence[CellRequest], *, jobs: int, out: Path, on_event: OnEvent) -> list[CellResult]:
    """Run cells, at most `jobs` at a time, and return their results in the order of the requests.

    Events go to `on_event(number of the cell, event)` and to `out/cells/<folder>/events.jsonl`. However this function
    is left, every process that it started has ended. Raises InfrastructureError when the server cannot do its work.
    """
    if not requests:
        return []
    coordinator = _Coordinator(requests, max(1, jobs), out, on_event)
    with _ServerProcess() as server:
        return coordinator.run(server)
