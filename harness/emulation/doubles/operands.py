"""Checks that the doubles make on their arguments: index tensors, pointer tables, sizes, pages.

Each refusal names the function and the parameter, what was found, what was expected, and what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import torch

from harness.emulation.doubles.rows import Slots
from harness.emulation.memory import AddressSpace, Kind, Region, region_of, spanned_bytes
from harness.emulation.raw import raw
from harness.errors import BadCall, KernelRefused, Misaligned, OutOfRegion, WrongDevice, WrongIndexDevice


def refuse(error: type[KernelRefused], call: str, found: str, expected: str, remedy: str) -> NoReturn:
    """Raise a refusal that tells the three things."""
    msg = f"{call}: {found}; expected {expected}; {remedy}"
    raise error(msg)


class Call:
    """One call of a double: its name, for messages, and the memory it may touch."""

    def __init__(self, name: str, memory: AddressSpace) -> None:
        self.name = name
        self.memory = memory

    def tensor(self, value: Any, what: str) -> torch.Tensor:
        """Return `value` when it is a tensor; BadCall otherwise."""
        if not isinstance(value, torch.Tensor):
            refuse(BadCall, self.name, f"{what} is {type(value).__name__}", "a tensor", "pass the buffer itself")
        return value

    def indices(
        self, value: Any, what: str, *, dtypes: Sequence[torch.dtype] = (torch.int64,), place: Kind | None = None
    ) -> Slots:
        """Return a 1-D contiguous index tensor as int64 values.

        Raises BadCall for another dtype or shape, WrongIndexDevice when it is known to lie elsewhere than `place`.
        """
        tensor = self.tensor(value, what)
        if tensor.dtype not in dtypes:
            names = " or ".join(str(dtype) for dtype in dtypes)
            refuse(BadCall, self.name, f"{what} is {tensor.dtype}", names, f"convert it with .to({dtypes[0]})")
        if tensor.dim() != 1 or not tensor.is_contiguous():
            found = f"{what} has shape {tuple(tensor.shape)} and strides {tensor.stride()}"
            refuse(BadCall, self.name, found, "a contiguous 1-D tensor", "flatten it with .reshape(-1).contiguous()")
        self.lies(tensor, what, place, WrongIndexDevice)
        return raw(tensor).numpy().astype(np.int64, copy=False)

    def pair(self, source: Slots, destination: Slots) -> None:
        """Refuse two index lists of different lengths."""
        if source.size != destination.size:
            found = f"{source.size} source and {destination.size} destination indices"
            refuse(BadCall, self.name, found, "as many of both", "pass the indices of the same tokens on both sides")

    def table(self, value: Any, what: str) -> list[int]:
        """Return the addresses in a pointer table: 1-D, contiguous, uint64, readable by the device."""
        tensor = self.tensor(value, what)
        if tensor.dtype != torch.uint64:
            refuse(
                BadCall, self.name, f"{what} is {tensor.dtype}", "torch.uint64 addresses", "build it from data_ptr()"
            )
        if tensor.dim() != 1 or not tensor.is_contiguous():
            found = f"{what} has shape {tuple(tensor.shape)} and strides {tensor.stride()}"
            refuse(BadCall, self.name, found, "a contiguous 1-D table", "pass one address for each layer")
        self.lies(tensor, what, "device", WrongDevice)
        return [int(address) for address in raw(tensor).numpy()]

    def lies(
        self, tensor: torch.Tensor, what: str, place: Kind | None, error: type[KernelRefused] = WrongDevice
    ) -> None:
        """Refuse a tensor that is known to lie on the other side; one of which nothing is known passes."""
        found = self.memory.kind_of(tensor) if place is not None else None
        if found is not None and found != place:
            remedy = "move it there first" if error is WrongIndexDevice else "check which buffer is passed"
            refuse(error, self.name, f"{what} lies on the {found} ({tensor.device})", f"it on the {place}", remedy)

    def region(self, tensor: torch.Tensor, operand: str) -> Region:
        """Return the bytes that a tensor operand spans: the accesses of a call must stay inside them."""
        holder = self.memory.find(tensor.data_ptr())
        if holder is None:
            return region_of(tensor, operand, self.memory.kind_of(tensor))
        if (holder.start, holder.nbytes) == (tensor.data_ptr(), spanned_bytes(tensor)):
            return holder
        return region_of(tensor, f"{holder.label}, as passed in {operand}", holder.kind, layer=holder.layer)

    def positive(self, **sizes: Any) -> None:
        """Refuse a size that is not a positive integer."""
        for what, value in sizes.items():
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value <= 0:
                refuse(BadCall, self.name, f"{what} is {value!r}", "a positive integer", "check the caller's geometry")

    def multiple(self, what: str, value: int, of: int, remedy: str) -> None:
        """Refuse a size or an address that is no multiple of what the kernel needs."""
        if value % of:
            refuse(Misaligned, self.name, f"{what} is {value}", f"a multiple of {of}", remedy)

    def whole_pages(self, count: int, page_size: int) -> None:
        """Refuse a number of indices that is not a whole number of pages."""
        self.positive(page_size=page_size)
        self.multiple("the number of indices", count, page_size, "pass whole pages only")

    def page_starts(self, slots: Slots, page_size: int, what: str, *, aligned: bool) -> Slots:
        """Return the first slot of each page, having checked what the kernel does not read.

        The real kernel reads the first index of a page and takes the others to follow. Raises BadCall where they do
        not, Misaligned where `aligned` is asked and a page starts elsewhere than on a multiple of the page size,
        OutOfRegion for a negative slot.
        """
        self.whole_pages(slots.size, page_size)
        pages = slots.reshape(-1, page_size)
        starts = pages[:, 0]
        self.not_negative(starts, what)
        if aligned and (starts % page_size).any():
            bad = int(np.flatnonzero(starts % page_size)[0])
            found = f"{what}, page {bad} of the call, starts at slot {int(starts[bad])}"
            remedy = "the kernel divides the first index by the page size and would silently use another page"
            refuse(Misaligned, self.name, found, f"a multiple of the page size {page_size}", remedy)
        broken = pages != starts[:, None] + np.arange(page_size)
        if broken.any():
            bad, at = (int(number) for number in np.argwhere(broken)[0])
            found = (
                f"{what}, page {bad} of the call: slot {int(pages[bad, at])} in position {at} after {int(starts[bad])}"
            )
            remedy = "the kernel reads only the first index of each page; sort the indices within their page"
            refuse(BadCall, self.name, found, f"slot {int(starts[bad]) + at}", remedy)
        return starts

    def not_negative(self, slots: Slots, what: str) -> None:
        """Refuse a negative index, which would address memory before the buffer."""
        if slots.size and int(slots.min()) < 0:
            found = f"{what}: index {int(slots.min())}"
            refuse(OutOfRegion, self.name, found, "indices from 0", "drop unused (-1) entries before the call")
