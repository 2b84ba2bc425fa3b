"""Backup and load with torch alone: no Python loop over rows, at most one layer's rows of extra memory.

On the CPU whole pages move one slice assignment each, through numpy's view of the same memory, which costs a third of a
torch slice assignment; scattered tokens and small pages move a layer at a time. On other devices a layer moves by
gather and scatter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from reference.kernels.planes import Planes, check_planes

# Below this a slice assignment costs more than the bytes that it moves.
_MIN_PAGE_BYTES = 8192

# Rows as opaque items: numpy copies them with memcpy, whatever bits they hold.
_Rows = npt.NDArray[Any]


def copy(dst: Planes, dst_indices: torch.Tensor, src: Planes, src_indices: torch.Tensor) -> None:
    """Let row dst_indices[i] of each plane of dst become row src_indices[i] of the same plane of src.

    Planes are uint8 (pages, page_size, row_bytes), indices int64 token slots. Raises ValueError or IndexError as
    `check_planes`; nothing is written then.
    """
    check_planes(dst, dst_indices, src, src_indices)
    page_size, row_bytes = dst[0].shape[1:]
    if dst[0].device.type != "cpu" or src[0].device.type != "cpu":
        _copy_on_device(dst, dst_indices, src, src_indices)
    elif page_size * row_bytes >= _MIN_PAGE_BYTES and _whole_pages(dst_indices, src_indices, page_size):
        _copy_pages(dst, dst_indices[::page_size] // page_size, src, src_indices[::page_size] // page_size)
    else:
        _copy_tokens(dst, dst_indices.numpy(), src, src_indices.numpy())


def _whole_pages(dst_indices: torch.Tensor, src_indices: torch.Tensor, page_size: int) -> bool:
    """Whether both sides name whole pages, each from its first slot to its last."""
    if len(dst_indices) % page_size:
        return False
    step = torch.arange(page_size)
    pages = (indices.view(-1, page_size) for indices in (dst_indices, src_indices))
    return all(bool((p[:, :1] % page_size == 0).all() and (p == p[:, :1] + step).all()) for p in pages)


def _as_items(plane: torch.Tensor) -> _Rows:
    """View a plane as (pages, page_size) items of row_bytes bytes."""
    return plane.numpy().view(np.dtype((np.void, plane.shape[2])))[:, :, 0]


def _copy_pages(dst: Planes, dst_pages: torch.Tensor, src: Planes, src_pages: torch.Tensor) -> None:
    layers = [(_as_items(d), _as_items(s)) for d, s in zip(dst, src, strict=True)]
    # Pages outermost: in page-first layouts the layers of a page are neighbours in memory.
    for to, source in zip(dst_pages.tolist(), src_pages.tolist(), strict=True):
        for d, s in layers:
            d[to] = s[source]


def _copy_tokens(dst: Planes, dst_slots: npt.NDArray[np.int64], src: Planes, src_slots: npt.NDArray[np.int64]) -> None:
    page_size = dst[0].shape[1]
    to, source = np.divmod(dst_slots, page_size), np.divmod(src_slots, page_size)
    for d, s in zip(dst, src, strict=True):
        _as_items(d)[to] = _as_items(s)[source]


def _copy_on_device(dst: Planes, dst_indices: torch.Tensor, src: Planes, src_indices: torch.Tensor) -> None:
    page_size = dst[0].shape[1]
    to, source = dst_indices.to(dst[0].device), src_indices.to(src[0].device)
    for d, s in zip(dst, src, strict=True):
        d[to // page_size, to % page_size] = s[source // page_size, source % page_size].to(d.device)
