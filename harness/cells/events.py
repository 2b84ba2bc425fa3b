"""The child's end of the event stream. It survives a SUT that closes every file descriptor."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any, Final

from harness.cells.wire import encode

_HIGH: Final = 200
_STANDARD: Final = (1, 2)


class EventSink:
    """Writes events, one JSON line each, into the coordinator's named pipe."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open()

    def _open(self) -> None:
        low = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
        self._fd = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, _HIGH)
        os.close(low)
        self._file = _file(self._fd)

    def send(self, event: dict[str, Any]) -> None:
        """Write one event; it is with the coordinator when this returns, whatever happens to this process."""
        if _file(self._fd) != self._file:  # closed, and perhaps another file by now
            self._open()
        data = memoryview(encode(event))
        while data:
            data = data[os.write(self._fd, data) :]


def _file(fd: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def print_to(log: Path) -> None:
    """Make standard output and error the named pipe `log`, and standard input empty."""
    for path, flags, targets in ((Path(os.devnull), os.O_RDONLY, (0,)), (log, os.O_WRONLY, _STANDARD)):
        fd = os.open(path, flags)
        for target in targets:
            os.dup2(fd, target)
        if fd not in targets:
            os.close(fd)


def mend_output(log: Path) -> None:
    """Open standard output and error again where a SUT closed one of them, so that a later case can print."""
    if any(_file(fd) is None for fd in _STANDARD):
        print_to(log)
