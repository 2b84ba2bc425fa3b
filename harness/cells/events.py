"""A cell's event file: JSON lines, appended by the cell's children and by the coordinator, read while they grow."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any

import msgspec

Event = dict[str, Any]

FILE = "events.jsonl"
_HIGH = 200


class EventWriter:
    """Appends events. One write a line, so lines of several processes never mix and a kill cuts at most the last.

    The lines are written by number: what a SUT does to Python's own streams cannot reach them. What it does to
    descriptors can: one that was closed, and may be another file's by now, is opened again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pid = os.getpid()
        self._open()

    def _open(self) -> None:
        low = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._fd = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, _HIGH)
        os.close(low)
        self._file = file_behind(self._fd)

    def write(self, event: Event) -> None:
        """Append one event; a process forked from the writer's stays silent."""
        if os.getpid() != self._pid:
            return
        if file_behind(self._fd) != self._file:
            self._open()
        line = memoryview(msgspec.json.encode(event) + b"\n")
        while line:
            line = line[os.write(self._fd, line) :]

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


def file_behind(fd: int) -> tuple[int, int] | None:
    """Return what identifies the file of a descriptor; None when it is closed."""
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino


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

    def cut(self) -> None:
        """Remove what follows the last whole line that was read: a child was killed while it wrote it."""
        if self._path.exists() and self._path.stat().st_size > self._at:
            os.truncate(self._path, self._at)
