"""Page-granular kernels, which read only the first index of each page (FACTS.md sections 4.1 and 4.2).

A page_first_direct host tensor is (pages, layers, page_size, ..., dim); a device layer is (tokens, ..., dim).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from reference import checks
from reference.transfer.indices import check_pair, page_starts
from reference.transfer.rows import Rows, copy_rows, packed_rows, strided_rows, token_rows

# The staged and page_unified kernels move 16-byte vectors.
_VECTOR = 16


def _page_block(name: str, host: torch.Tensor, layer: int, page_size: int) -> Rows:
    """Blocks of page_size rows of one layer in a (pages, layers, page_size, ..., dim) tensor, one a page."""
    checks.equal(f"{name}.shape[2]", host.shape[2], page_size, "the page size")
    checks.index_below("layer_id", layer, host.shape[1])
    block = host[0, 0].numel() * host.element_size()
    return strided_rows(name, host, base=layer * block, stride=host.shape[1] * block, item_size=block)


def _pages_of(name: str, layer: torch.Tensor, page_size: int) -> Rows:
    """The same blocks in a device layer (tokens, ..., dim)."""
    return packed_rows(name, layer, page_size * layer[0].numel() * layer.element_size())


def _page_numbers(
    page_size: int, dst: torch.Tensor, dst_bound: int, src: torch.Tensor, src_bound: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Check token indices of whole pages; return (destination, source) page numbers."""
    check_pair("dst_indices", dst, dst_bound * page_size, "src_indices", src, src_bound * page_size)
    dst_starts, src_starts = page_starts("dst_indices", dst, page_size), page_starts("src_indices", src, page_size)
    return dst_starts // page_size, src_starts // page_size


def direct_lf_pf(
    src_ptrs: Sequence[torch.Tensor],
    dst: torch.Tensor,
    src_indices: torch.Tensor,
    dst_indices: torch.Tensor,
    page_size: int,
) -> None:
    """transfer_kv_all_layer_direct_lf_pf: page src of every layer goes to dst[page, layer]."""
    checks.equal("len(src_ptrs)", len(src_ptrs), dst.shape[1], "the layers of dst")
    sources = [_pages_of(f"src_ptrs[{i}]", t, page_size) for i, t in enumerate(src_ptrs)]
    blocks = [_page_block("dst", dst, layer, page_size) for layer in range(len(src_ptrs))]
    for block, source in zip(blocks, sources, strict=True):
        checks.equal(f"page bytes of {source.name}", source.row_bytes, block.row_bytes, "the page bytes of dst")
    bounds = dst.shape[0], min(s.count for s in sources)
    numbers = _page_numbers(page_size, dst_indices, bounds[0], src_indices, bounds[1])
    for block, source in zip(blocks, sources, strict=True):
        copy_rows(block, numbers[0], source, numbers[1])


def direct_pf_lf(
    src: torch.Tensor,
    dst: torch.Tensor,
    src_indices: torch.Tensor,
    dst_indices: torch.Tensor,
    layer_id: int,
    page_size: int,
) -> None:
    """transfer_kv_per_layer_direct_pf_lf: src[page, layer_id] goes to the page of dst."""
    block, target = _page_block("src", src, layer_id, page_size), _pages_of("dst", dst, page_size)
    checks.equal("page bytes of dst", target.row_bytes, block.row_bytes, "the page bytes of src")
    to, source = _page_numbers(page_size, dst_indices, target.count, src_indices, block.count)
    copy_rows(target, to, block, source)


def staged_lf_pf(
    src_layers: Sequence[torch.Tensor],
    dst: torch.Tensor,
    src_indices: torch.Tensor,
    dst_indices: torch.Tensor,
    page_size: int,
) -> None:
    """transfer_hicache_all_layer_mla_staged_lf_pf: whole pages of all layers, dst is (tokens, layers, ..., dim).

    The kernel gathers up to 64 pages into a staging buffer and copies them out; the result is the same.
    """
    checks.equal("len(src_layers)", len(src_layers), dst.shape[1], "the layers of dst")
    sources = [token_rows(f"src_layers[{i}]", t) for i, t in enumerate(src_layers)]
    targets = [token_rows(f"dst layer {i}", dst[:, i]) for i in range(len(src_layers))]
    for target, source in zip(targets, sources, strict=True):
        checks.multiple_of("row bytes", source.row_bytes, _VECTOR, "the kernel moves 16-byte vectors")
        checks.equal(f"row bytes of {target.name}", target.row_bytes, source.row_bytes, "the row bytes of the source")
    check_pair("dst_indices", dst_indices, dst.shape[0], "src_indices", src_indices, min(s.count for s in sources))
    page_starts("src_indices", src_indices, page_size)
    page_starts("dst_indices", dst_indices, page_size)
    for target, source in zip(targets, sources, strict=True):
        copy_rows(target, dst_indices, source, src_indices)


def unified_write_back(
    src_layers: Sequence[torch.Tensor],
    dst: torch.Tensor,
    src_pages: torch.Tensor,
    dst_pages: torch.Tensor,
    page_size: int,
) -> None:
    """page_unified write-back: PAGE numbers on both sides; dst is (pages, layers, page_size, dim)."""
    checks.equal("len(src_layers)", len(src_layers), dst.shape[1], "the layers of dst")
    sources = [_pages_of(f"src_layers[{i}]", t, page_size) for i, t in enumerate(src_layers)]
    blocks = [_page_block("dst", dst, layer, page_size) for layer in range(len(src_layers))]
    for block, source in zip(blocks, sources, strict=True):
        row = source.row_bytes // page_size
        checks.multiple_of("row bytes", row, _VECTOR, "the kernel moves 16-byte vectors")
        checks.equal(f"page bytes of {source.name}", source.row_bytes, block.row_bytes, "the page bytes of dst")
    check_pair("dst_pages", dst_pages, dst.shape[0], "src_pages", src_pages, min(s.count for s in sources))
    for block, source in zip(blocks, sources, strict=True):
        copy_rows(block, dst_pages, source, src_pages)


def unified_load(
    src: torch.Tensor, dst: torch.Tensor, src_indices: torch.Tensor, dst_indices: torch.Tensor, layer_id: int
) -> None:
    """page_unified load: TOKEN slots on both sides; src is (pages, layers, page_size, dim), dst a layer."""
    checks.index_below("layer_id", layer_id, src.shape[1])
    pages, _, page_size = src.shape[:3]
    target, rows = token_rows("dst", dst), src[:, layer_id]
    row = rows[0, 0].numel() * src.element_size()
    checks.multiple_of("row bytes", row, _VECTOR, "the kernel moves 16-byte vectors")
    checks.equal("row bytes of dst", target.row_bytes, row, "the row bytes of src")
    check_pair("dst_indices", dst_indices, target.count, "src_indices", src_indices, pages * page_size)
    found = rows[src_indices // page_size, src_indices % page_size].contiguous()
    every = torch.arange(len(found), device=found.device)
    if len(found):
        copy_rows(target, dst_indices, token_rows("src", found), every)
