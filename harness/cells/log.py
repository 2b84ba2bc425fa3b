"""What a cell's processes print: the beginning as it comes, and the end of it when the process ends."""

from __future__ import annotations

from collections import deque
from pathlib import Path

LOG_FILE = "output.log"

_LIMIT = 1 << 20
_LEAST = 1 << 16
_TAIL = 1 << 14


class CappedLog:
    """Appends the output of one process to a file that those before it may have filled already."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)
        self._room = max(_LEAST, _LIMIT - self._file.tell())
        self._tail: deque[bytes] = deque()
        self._kept = 0
        self._dropped = 0

    def write(self, data: bytes) -> None:
        """Take in output."""
        head, rest = data[: self._room], data[self._room :]
        self._room -= len(head)
        if head:
            self._file.write(head)
        if rest:
            self._tail.append(rest)
            self._kept += len(rest)
        while self._tail and self._kept - len(self._tail[0]) >= _TAIL:
            gone = len(self._tail.popleft())
            self._kept -= gone
            self._dropped += gone

    def close(self) -> None:
        """Write the last output, with a line that says how much is missing before it."""
        last = b"".join(self._tail)
        dropped = self._dropped + len(last[:-_TAIL])
        if dropped:
            self._file.write(f"\n[poolparity left out {dropped} bytes]\n".encode())
        self._file.write(last[-_TAIL:])
        self._file.close()
