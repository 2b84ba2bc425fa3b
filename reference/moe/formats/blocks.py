"""Splitting the last dimension into blocks."""

from __future__ import annotations

import torch


def blocks_of(tensor: torch.Tensor, size: int) -> torch.Tensor:
    """Return (..., n / size, size) of (..., n); ValueError when n is no multiple of `size`."""
    if tensor.shape[-1] % size:
        msg = f"the last dimension of {tuple(tensor.shape)} is no multiple of {size}; pad it, or give whole blocks"
        raise ValueError(msg)
    return tensor.reshape(*tensor.shape[:-1], -1, size)
