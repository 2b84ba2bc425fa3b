"""Where a process was when it died or hung: faulthandler's stack, in memory that the server shares with the child."""

from __future__ import annotations

import faulthandler
import os
import re
import signal
from pathlib import Path
from typing import Final

from harness.verdicts.location import sut_location

_FRAME: Final = re.compile(r'^  File "(?P<path>.+)", line (?P<line>\d+) in ', re.MULTILINE)
_LARGEST: Final = 1 << 14


class Trace:
    """Made before a fork; the child writes to it when it must, the parent reads it when the child has ended."""

    def __init__(self) -> None:
        self._fd = os.memfd_create("poolparity-trace", os.MFD_CLOEXEC)

    def record(self) -> None:
        """In the child: write the stack when a fatal signal comes, and when SIGUSR1 asks for it."""
        faulthandler.enable(file=self._fd, all_threads=False)
        faulthandler.unregister(signal.SIGUSR1)  # a fork inherits its parent's, and registering twice does nothing
        faulthandler.register(signal.SIGUSR1, file=self._fd, all_threads=False)

    def read(self) -> str:
        """In the parent, once: return what was written."""
        text = os.pread(self._fd, _LARGEST, 0).decode(errors="replace")
        os.close(self._fd)
        return text


def describe(status: int) -> str:
    """Say how a process ended, from its exit code or minus the signal that killed it."""
    if status < 0:
        name = next((known.name for known in signal.Signals if known == -status), "a real-time signal")
        return f"died of {name} (signal {-status})"
    return f"ended itself with exit code {status}"


def deepest(stack: str, root: Path | None) -> str:
    """Return the innermost frame of a stack that is the SUT's, as `location`; "" when there is none."""
    frames = _FRAME.finditer(stack)  # the most recent call comes first
    places = (sut_location(frame["path"], int(frame["line"]), root) for frame in frames)
    return next(filter(None, places), "")
