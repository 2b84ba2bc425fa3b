"""Moving rows between regions: every check of a call comes first, so a refused call has written nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from harness.emulation.memory import Region
from harness.errors import BadCall, OutOfRegion

Slots = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Addressing:
    """Byte offsets of the rows of an operand from its base address, one for each index, and the index they come from.

    `unit` says what the indices count: slots, or pages.
    """

    offsets: Slots
    slots: Slots
    unit: str = "slot"
    low: int = field(init=False)
    high: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", int(self.offsets.min()) if self.offsets.size else 0)
        object.__setattr__(self, "high", int(self.offsets.max()) if self.offsets.size else 0)

    @classmethod
    def strided(cls, slots: Slots, stride: int, unit: str = "slot") -> Addressing:
        """Row i lies `slots[i] * stride` bytes after the base address."""
        return cls(slots * stride, slots, unit)


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows that one operand contributes: at `base + addressing.offsets[i]`, inside `region`."""

    what: str
    region: Region
    base: int
    addressing: Addressing


@dataclass(frozen=True, slots=True)
class Copy:
    """Rows of `row_bytes` bytes from one operand to another, index by index."""

    source: Rows
    destination: Rows
    row_bytes: int


def move(call: str, copies: Sequence[Copy]) -> None:
    """Check all the copies of a call, then make them.

    Raises OutOfRegion for a byte outside its operand's region, BadCall where two rows are written to the same bytes
    (the last writer wins on hardware) or a row is read from bytes that the same call writes.
    """
    for copy in copies:
        _check_bounds(call, copy.source, copy.row_bytes)
        _check_bounds(call, copy.destination, copy.row_bytes)
    if not copies or not copies[0].destination.addressing.offsets.size:
        return
    written = _Written(call, copies)
    written.check_single_writer()
    written.check_not_read()
    for copy in copies:
        _view(copy.destination, copy.row_bytes)[_offsets(copy.destination)] = _view(copy.source, copy.row_bytes)[
            _offsets(copy.source)
        ]


def _offsets(rows: Rows) -> Slots:
    return rows.addressing.offsets + (rows.base - rows.region.start)


def _view(rows: Rows, row_bytes: int) -> NDArray[np.void]:
    """Return an overlapping view: element k is the row of `row_bytes` bytes that starts at byte k of the region."""
    return np.ndarray((rows.region.nbytes - row_bytes + 1,), np.dtype((np.void, row_bytes)), rows.region.data, 0, (1,))


def _check_bounds(call: str, rows: Rows, row_bytes: int) -> None:
    if not rows.addressing.offsets.size:
        return
    shift = rows.base - rows.region.start
    if shift + rows.addressing.low >= 0 and shift + rows.addressing.high + row_bytes <= rows.region.nbytes:
        return
    starts = _offsets(rows)
    at = int(np.flatnonzero((starts < 0) | (starts + row_bytes > rows.region.nbytes))[0])
    first, slot = int(starts[at]), int(rows.addressing.slots[at])
    msg = (
        f"{call}: {rows.what}, {rows.addressing.unit} {slot}: bytes {first}..{first + row_bytes} lie outside "
        f"{rows.region}; expected every row inside it; check the index, the row size and the stride"
    )
    raise OutOfRegion(msg)


@dataclass(frozen=True, slots=True)
class _Written:
    """All the rows that a call writes, by address."""

    call: str
    copies: Sequence[Copy]

    def check_single_writer(self) -> None:
        """Refuse a call that writes some byte twice."""
        rows = [copy.destination for copy in self.copies]
        starts = np.concatenate([side.base + side.addressing.offsets for side in rows])
        counts = [side.addressing.offsets.size for side in rows]
        row_bytes = np.repeat(np.array([copy.row_bytes for copy in self.copies], dtype=np.int64), counts)
        order = np.argsort(starts, kind="stable")
        gaps = np.diff(starts[order]) < row_bytes[order][:-1]
        if gaps.any():
            at = int(np.flatnonzero(gaps)[0])
            self._refuse_race(int(order[at]), int(order[at + 1]))

    def _refuse_race(self, one: int, other: int) -> NoReturn:
        first, second = self._name(min(one, other)), self._name(max(one, other))
        msg = (
            f"{self.call}: {first} and {second} are written to the same bytes; expected each destination once, for the "
            "last writer wins at random on hardware; check the destination indices, pointers and row size"
        )
        raise BadCall(msg)

    def _name(self, number: int) -> str:
        for copy in self.copies:
            addressing = copy.destination.addressing
            if number < addressing.slots.size:
                return f"{copy.destination.what}, {addressing.unit} {int(addressing.slots[number])}"
            number -= addressing.slots.size
        raise AssertionError(number)

    def check_not_read(self) -> None:
        """Refuse a call that reads a byte which it also writes."""
        read, write = self._hulls("source"), self._hulls("destination")
        meet = (read[:, None, 0] < write[None, :, 1]) & (write[None, :, 0] < read[:, None, 1])
        for reader, writer in np.argwhere(meet).tolist():
            self._check_pair(self.copies[reader], self.copies[writer])

    def _hulls(self, side: str) -> Slots:
        hulls = []
        for copy in self.copies:
            rows: Rows = getattr(copy, side)
            low, high = rows.base + rows.addressing.low, rows.base + rows.addressing.high
            hulls.append((low, high + copy.row_bytes))
        return np.array(hulls, dtype=np.int64)

    def _check_pair(self, reader: Copy, writer: Copy) -> None:
        writes = np.sort(writer.destination.base + writer.destination.addressing.offsets)
        reads = reader.source.base + reader.source.addressing.offsets
        # The first write that ends after the read starts must not start before the read ends.
        first = np.searchsorted(writes, reads - writer.row_bytes, side="right")
        candidates = writes[np.minimum(first, writes.size - 1)]
        clash = (first < writes.size) & (candidates < reads + reader.row_bytes)
        if clash.any():
            addressing = reader.source.addressing
            slot = int(addressing.slots[int(np.flatnonzero(clash)[0])])
            msg = (
                f"{self.call}: {reader.source.what}, {addressing.unit} {slot} is read from bytes that the same call "
                f"writes ({writer.destination.what}); expected source and destination apart; check the pointers"
            )
            raise BadCall(msg)
