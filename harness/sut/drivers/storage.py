"""Storage pages and registered buffers of a host pool: bytes instead of elements, places instead of addresses."""

from __future__ import annotations

from collections.abc import Mapping

import torch


def flat_bytes(page: torch.Tensor) -> torch.Tensor:
    """Return a page as a flat uint8 copy."""
    return page.contiguous().clone().view(-1).view(torch.uint8)


def locate(buffers: Mapping[str, torch.Tensor], pointer: int, nbytes: int) -> tuple[str, int]:
    """Return (component, byte offset) of an address that a pool gave out.

    Raises AssertionError when the bytes from there on do not lie in one of the pool's own buffers.
    """
    for component, tensor in buffers.items():
        start, end = tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes
        if start <= pointer and pointer + nbytes <= end:
            return component, pointer - start
    spans = ", ".join(f"{c}: {t.nbytes} bytes from {t.data_ptr():#x}" for c, t in buffers.items())
    msg = f"the pool names {nbytes} bytes at {pointer:#x}, which lie in none of its buffers ({spans})"
    raise AssertionError(msg)
