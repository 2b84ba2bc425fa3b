"""Preconditions on index tensors. Each error names the argument, its value and the bound; nothing was written yet."""

from __future__ import annotations

import torch

from reference import checks


def check_index(name: str, indices: torch.Tensor, bound: int) -> None:
    """Check one int64 vector of slots below `bound`: ValueError for its form, IndexError for a slot outside."""
    checks.equal(f"{name}.dtype", indices.dtype, torch.int64, "kernels read 64-bit indices")
    checks.equal(f"{name}.dim()", indices.dim(), 1, "indices are a vector")
    if indices.device.type == "meta":
        msg = f"{name}.device={str(indices.device)!r} has no values; expected indices in memory"
        raise ValueError(msg)
    outside = ((indices < 0) | (indices >= bound)).nonzero()
    if len(outside):
        at = int(outside[0])
        checks.index_below(f"{name}[{at}]", int(indices[at]), bound)


def check_pair(
    dst_name: str, dst_indices: torch.Tensor, dst_bound: int, src_name: str, src_indices: torch.Tensor, src_bound: int
) -> None:
    """Check destination and source slots of one transfer: form, bounds, equal length, no destination named twice."""
    check_index(dst_name, dst_indices, dst_bound)
    check_index(src_name, src_indices, src_bound)
    if len(dst_indices) != len(src_indices):
        msg = f"{dst_name} has {len(dst_indices)} indices and {src_name} has {len(src_indices)}; expected equally many"
        raise ValueError(msg)
    ascending = dst_indices.sort().values
    for twice in ascending[1:][ascending[1:] == ascending[:-1]][:1].tolist():
        msg = f"{dst_name} names slot {twice} more than once; expected each destination once"
        raise ValueError(msg)


def page_starts(name: str, indices: torch.Tensor, page_size: int) -> torch.Tensor:
    """Return the first slot of each page of indices, for kernels that read no other.

    Raises ValueError when the indices are not whole pages: each page of them starting on a page and ascending by one.
    """
    checks.at_least("page_size", page_size, 1)
    checks.multiple_of(f"len({name})", len(indices), page_size, "the kernel moves whole pages")
    pages = indices.view(-1, page_size)
    starts = pages[:, 0]
    for at in (starts % page_size).nonzero()[:1].flatten().tolist():
        msg = f"{name}[{at * page_size}]={int(starts[at])} must start a page: a multiple of {page_size}"
        raise ValueError(msg)
    follow = starts[:, None] + torch.arange(page_size, device=indices.device)
    for at in (pages != follow).flatten().nonzero()[:1].flatten().tolist():
        found, expected = int(indices[at]), int(follow.flatten()[at])
        msg = f"{name}[{at}]={found} must be {expected}: the kernel reads only the first index of a page"
        raise ValueError(msg)
    return starts
