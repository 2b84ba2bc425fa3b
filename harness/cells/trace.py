"""Where a process was when it died or hung: a stack that faulthandler writes into anonymous memory of its parent."""

from __future__ import annotations

import faulthandler
import os
import re
import signal
from pathlib import Path
from typing import Final

from harness.cells.location import sut_location

_FRAME: Final = re.compile(r'^  File "(?P<path>.+)", line (?P<line>\d+) in ', re.MULTILINE)
_LARGEST: Final = 1 << 16


class Trace:
    """Made before a fork; the child writes to it when it must, the parent reads it afterwards."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("poolparity-trace", os.MFD_CLOEXEC)

    def record(self) -> None:
        """In the child: write the stack when a fatal signal comes, and when SIGUSR1 asks for it."""
        faulthandler.enable(file=self.fd, all_threads=False)
        faulthandler.register(signal.SIGUSR1, file=self.fd, all_threads=False)

    def read(self) -> str:
        """In the parent: return what was written, and forget it."""
        text = os.pread(self.fd, _LARGEST, 0).decode(errors="replace")
        os.close(self.fd)
        return text


def deepest(text: str, root: Path | None) -> str:
    """Return the innermost frame of a stack that belongs to the SUT, as `location`; empty when there is none."""
    for frame in _FRAME.finditer(text):  # faulthandler writes the most recent call first
        place = sut_location(frame["path"], int(frame["line"]), root)
        if place:
            return place
    return ""
