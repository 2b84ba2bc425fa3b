"""Rows in memory: the one copy that every transfer kernel is made of.

Row i of a `Rows` is the bytes [base + i*stride, base + i*stride + row_bytes) of a buffer. A kernel's meaning is the
choice of base and stride on either side; `copy_rows` does the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from reference import checks


@dataclass(frozen=True, slots=True)
class Rows:
    """Equal rows at equal distances in a flat uint8 buffer. `name` is the operand, for messages."""

    name: str
    buffer: torch.Tensor
    base: int
    stride: int
    row_bytes: int
    count: int

    def view(self) -> torch.Tensor:
        """Return uint8 (count, row_bytes), no copy."""
        start = self.buffer.storage_offset() + self.base
        return self.buffer.as_strided((self.count, self.row_bytes), (self.stride, 1), start)


def flat_bytes(name: str, tensor: torch.Tensor) -> torch.Tensor:
    """View a tensor as its flat bytes; ValueError when it is not contiguous."""
    if not tensor.is_contiguous():
        msg = f"{name} has strides {tensor.stride()}; expected a contiguous tensor of shape {tuple(tensor.shape)}"
        raise ValueError(msg)
    return tensor.detach().view(-1).view(torch.uint8)


def packed_rows(name: str, tensor: torch.Tensor, item_size: int) -> Rows:
    """Rows that follow each other without a gap: what a kernel sees that is given a base address and an item size."""
    return strided_rows(name, tensor, base=0, stride=item_size, item_size=item_size)


def strided_rows(name: str, tensor: torch.Tensor, *, base: int, stride: int, item_size: int) -> Rows:
    """Rows `stride` bytes apart, the first at byte `base` of a contiguous tensor.

    Raises ValueError when the rows would overlap or not one fits.
    """
    checks.at_least("item_size", item_size, 1)
    checks.at_least(f"row stride of {name}", stride, item_size)
    buffer = flat_bytes(name, tensor)
    room = buffer.numel() - base - item_size
    if base < 0 or room < 0:
        msg = f"{name} holds {buffer.numel()} bytes: no row of {item_size} bytes fits at byte {base}"
        raise ValueError(msg)
    return Rows(name, buffer, base, stride, item_size, room // stride + 1)


def token_rows(name: str, tensor: torch.Tensor) -> Rows:
    """Rows of a (tokens, ..., dim) tensor whose tokens may be any distance apart but are packed in themselves."""
    if not tensor[0].is_contiguous():
        msg = f"{name} has strides {tensor.stride()}; expected contiguous rows of shape {tuple(tensor.shape[1:])}"
        raise ValueError(msg)
    size = tensor.element_size()
    whole = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
    stride = tensor.stride(0) * size
    return Rows(name, whole, int(tensor.storage_offset()) * size, stride, tensor[0].numel() * size, tensor.shape[0])


def copy_rows(dst: Rows, dst_indices: torch.Tensor, src: Rows, src_indices: torch.Tensor) -> None:
    """Let row dst_indices[i] of dst become row src_indices[i] of src, for every i.

    Raises ValueError when the rows differ in width. Indices must have been checked.
    """
    checks.equal(f"row bytes of {dst.name}", dst.row_bytes, src.row_bytes, f"the row bytes of {src.name}")
    dst.view().index_copy_(0, dst_indices.to(dst.buffer.device), src.view()[src_indices].to(dst.buffer.device))
