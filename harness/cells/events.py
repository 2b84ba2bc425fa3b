"""A cell's event file: JSON lines, appended by the cell's children and by the coordinator, read while they grow."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

Event = dict[str, Any]

FILE = "events.jsonl"


class EventWriter:
    """Appends events. One write a line, so lines of several processes never mix and a kill cuts at most the last."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        # The lines are written by number: what a SUT does to Python's own streams cannot reach them.
        self._pid = os.getpid()

    def write(self, event: Event) -> None:
        """Append one event; a process forked from the writer's stays silent."""
        if os.getpid() == self._pid:
            os.write(self._fd, msgspec.json.encode(event) + b"\n")

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


class EventReader:
    """Reads what was appended since the last call."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0

    def new(self) -> list[Event]:
        """Return the whole lines that are new; [] while there is no file."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                whole, newline, _ = file.read().rpartition(b"\n")
        except FileNotFoundError:
            return []
        self._at += len(whole) + len(newline)
        return [msgspec.json.decode(line, type=dict[str, Any]) for line in whole.split(b"\n") if line]
