"""How much a case compared: a case that compared nothing is not a pass."""

from __future__ import annotations


class Meter:
    """Counts the bytes that a case has compared so far."""

    def __init__(self) -> None:
        self.bytes = 0

    def compared(self, nbytes: int) -> None:
        """Add the bytes of one comparison."""
        self.bytes += nbytes
