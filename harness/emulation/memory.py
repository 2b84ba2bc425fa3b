"""The memory that the doubles may touch: regions, each the exact byte range that one registered tensor view covers.

A kernel double gets raw addresses, as the real kernel does. It resolves the base address of each operand to one region
and keeps every access inside it, so an index that is too large is refused even where it lands in a neighbour.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from typing import Final, Literal, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray

from harness.emulation import npu_device
from harness.emulation.raw import raw
from harness.errors import OutOfRegion

Kind = Literal["device", "host"]
"""Where a region lies on the emulated machine; both are CPU memory here."""

_KINDS: Final = ("device", "host")


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """A range of bytes, [`start`, `start + nbytes`), and what it is.

    `data` is a writable uint8 view of those bytes; it keeps the memory alive. `layer` and `row_bytes` are for messages.
    """

    label: str
    kind: Kind | None
    start: int
    nbytes: int
    data: NDArray[np.uint8] = field(repr=False)
    layer: int | None = None
    row_bytes: int | None = None

    @property
    def end(self) -> int:
        """The address after the last byte."""
        return self.start + self.nbytes

    def __str__(self) -> str:
        return f"region {self.label!r} ({self.nbytes} bytes)"


def spanned_bytes(tensor: torch.Tensor) -> int:
    """Bytes from the first to the last element of a view, gaps included; 0 when it has no element."""
    if tensor.numel() == 0:
        return 0
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return int(last + 1) * tensor.element_size()


def region_of(
    tensor: torch.Tensor, label: str, kind: Kind | None, *, layer: int | None = None, row_bytes: int | None = None
) -> Region:
    """Return the region that a view spans, without registering it."""
    nbytes = spanned_bytes(tensor)
    alias = raw(tensor.detach())
    offset = alias.storage_offset() * alias.element_size()
    flat = torch.empty(0, dtype=torch.uint8).set_(alias.untyped_storage(), offset, (nbytes,), (1,))
    return Region(label, kind, alias.data_ptr(), nbytes, flat.numpy(), layer, row_bytes)


class AddressSpace:
    """The registered regions. They may nest (a buffer and its layers): the smallest one around an address counts."""

    def __init__(self) -> None:
        self._regions: list[Region] = []
        self._starts: list[int] = []
        self._longest = 0
        self._found: dict[int, Region] = {}

    @property
    def regions(self) -> tuple[Region, ...]:
        """Every region, by address."""
        return tuple(self._regions)

    def register(
        self,
        tensor: torch.Tensor,
        *,
        label: str,
        kind: Kind,
        layer: int | None = None,
        row_bytes: int | None = None,
    ) -> Region:
        """Add the exact byte range of a contiguous view and keep its memory alive until `clear`.

        An empty view becomes a region that contains no address. Raises ValueError for a view with gaps (register its
        buffer, or its rows one by one) or an unknown kind.
        """
        if kind not in _KINDS:
            msg = f"region {label!r}: kind is {kind!r}; expected 'device' or 'host'"
            raise ValueError(msg)
        if not tensor.is_contiguous():
            msg = (
                f"region {label!r}: a view of shape {tuple(tensor.shape)} with strides {tensor.stride()} has gaps; "
                "expected a contiguous view; register the whole buffer, or each contiguous part of it"
            )
            raise ValueError(msg)
        region = region_of(tensor, label, kind, layer=layer, row_bytes=row_bytes)
        if region.nbytes:
            at = bisect.bisect_right(self._starts, region.start)
            self._starts.insert(at, region.start)
            self._regions.insert(at, region)
            self._longest = max(self._longest, region.nbytes)
            self._found.clear()
        return region

    def forget(self, region: Region) -> None:
        """Remove one region; one that is not registered (any more) is ignored."""
        if region in self._regions:
            at = self._regions.index(region)
            del self._regions[at], self._starts[at]
            self._found.clear()

    def clear(self) -> None:
        """Forget every region and let go of the memory."""
        self._regions.clear()
        self._starts.clear()
        self._found.clear()
        self._longest = 0

    def find(self, ptr: int) -> Region | None:
        """Return the smallest region that contains an address, or None."""
        known = self._found.get(ptr)
        if known is not None:
            return known
        best: Region | None = None
        at = bisect.bisect_right(self._starts, ptr) - 1
        while at >= 0 and ptr - self._starts[at] < self._longest:
            region = self._regions[at]
            if ptr < region.end and (best is None or region.nbytes < best.nbytes):
                best = region
            at -= 1
        if best is not None:
            self._found[ptr] = best
        return best

    def resolve(self, ptr: int, *, what: str) -> Region:
        """Return the smallest region that contains an address; raises OutOfRegion, which names `what`, otherwise."""
        region = self.find(ptr)
        if region is None:
            self._refuse(ptr, what)
        return region

    def kind_of(self, tensor: torch.Tensor) -> Kind | None:
        """Where a tensor lies: by its device, else by the region that holds it.

        None when nothing tells: a CPU tensor that is not registered, where the emulated device is the CPU too.
        """
        if tensor.device.type != "cpu":
            return "device"
        region = self.find(tensor.data_ptr()) if tensor.numel() else None
        if region is not None:
            return region.kind
        return "host" if npu_device.is_loaded() else None

    def _refuse(self, ptr: int, what: str) -> NoReturn:
        before = [region for region in self._regions if region.end <= ptr]
        hint = f"; {ptr - before[-1].end} bytes after the end of {before[-1]}" if before else ""
        msg = (
            f"{what}: address {ptr:#x} lies in no registered region{hint}; expected the address of a pool buffer; "
            "check the pointer table, or register the buffer with AddressSpace.register"
        )
        raise OutOfRegion(msg)
