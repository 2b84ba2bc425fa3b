"""Token-granular kernels: sgl_kernel.kvcacheio and the JIT HiCache kernels (FACTS.md sections 4.1 and 4.2).

Indices are token slots in any order. Tables are sequences of layer tensors: what the kernels take as pointers.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from reference import checks
from reference.transfer.indices import check_pair
from reference.transfer.rows import Rows, copy_rows, packed_rows, strided_rows, token_rows

# The AOT kernels move 8-byte words.
_WORD = 8


def _move(dst: Sequence[Rows], dst_indices: torch.Tensor, src: Sequence[Rows], src_indices: torch.Tensor) -> None:
    """Check everything, then copy table by table."""
    checks.at_least("number of layers", len(dst), 1)
    checks.equal("number of source tables", len(src), len(dst), "one for each destination table")
    for d, s in zip(dst, src, strict=True):
        checks.equal(f"row bytes of {d.name}", d.row_bytes, s.row_bytes, f"the row bytes of {s.name}")
    bounds = min(d.count for d in dst), min(s.count for s in src)
    check_pair("dst_indices", dst_indices, bounds[0], "src_indices", src_indices, bounds[1])
    for d, s in zip(dst, src, strict=True):
        copy_rows(d, dst_indices, s, src_indices)


def per_layer(
    src: torch.Tensor, dst: torch.Tensor, src_indices: torch.Tensor, dst_indices: torch.Tensor, item_size: int
) -> None:
    """transfer_kv_per_layer_mla: row dst_indices[i] of dst becomes row src_indices[i] of src, rows packed."""
    _check_item(item_size)
    _move([packed_rows("dst", dst, item_size)], dst_indices, [packed_rows("src", src, item_size)], src_indices)


def one_layer(
    cache_dst: torch.Tensor, cache_src: torch.Tensor, indices_dst: torch.Tensor, indices_src: torch.Tensor
) -> None:
    """transfer_hicache_one_layer_mla: as `per_layer`, but the rows of either side may be any distance apart."""
    _move([token_rows("cache_dst", cache_dst)], indices_dst, [token_rows("cache_src", cache_src)], indices_src)


def all_layer(
    src_layers: Sequence[torch.Tensor],
    dst_layers: Sequence[torch.Tensor],
    src_indices: torch.Tensor,
    dst_indices: torch.Tensor,
    item_size: int,
    num_layers: int,
) -> None:
    """transfer_kv_all_layer_mla: `per_layer` for each of num_layers pairs of tables."""
    _check_item(item_size)
    _check_tables(num_layers, src_layers=src_layers, dst_layers=dst_layers)
    dst = [packed_rows(f"dst_layers[{i}]", t, item_size) for i, t in enumerate(dst_layers)]
    src = [packed_rows(f"src_layers[{i}]", t, item_size) for i, t in enumerate(src_layers)]
    _move(dst, dst_indices, src, src_indices)


def lf_pf(
    src_layers: Sequence[torch.Tensor],
    dst: torch.Tensor,
    src_indices: torch.Tensor,
    dst_indices: torch.Tensor,
    item_size: int,
    dst_layout_dim: int,
    num_layers: int,
) -> None:
    """transfer_kv_all_layer_mla_lf_pf: to page_first; row at dst + slot*dst_layout_dim + layer*item_size."""
    _check_item(item_size)
    _check_tables(num_layers, src_layers=src_layers)
    src = [packed_rows(f"src_layers[{i}]", t, item_size) for i, t in enumerate(src_layers)]
    out = [_page_first("dst", dst, layer, item_size, dst_layout_dim) for layer in range(num_layers)]
    _move(out, dst_indices, src, src_indices)


def pf_lf(
    src: torch.Tensor,
    dst: torch.Tensor,
    src_indices: torch.Tensor,
    dst_indices: torch.Tensor,
    layer_id: int,
    item_size: int,
    src_layout_dim: int,
) -> None:
    """transfer_kv_per_layer_mla_pf_lf: from page_first; row at src + slot*src_layout_dim + layer_id*item_size."""
    _check_item(item_size)
    source = _page_first("src", src, layer_id, item_size, src_layout_dim)
    _move([packed_rows("dst", dst, item_size)], dst_indices, [source], src_indices)


def direct(
    src_layers: Sequence[torch.Tensor],
    dst_layers: Sequence[torch.Tensor],
    src_indices: torch.Tensor,
    dst_indices: torch.Tensor,
    page_size: int,
) -> None:
    """transfer_kv_direct: rows of each pair of (tokens, ..., dim) tensors; the number of indices is whole pages.

    Runs of ascending indices are merged by the kernel, which changes nothing in what is copied.
    """
    checks.at_least("page_size", page_size, 1)
    checks.multiple_of("len(src_indices)", len(src_indices), page_size, "the kernel takes whole pages")
    dst = [token_rows(f"dst_layers[{i}]", t) for i, t in enumerate(dst_layers)]
    src = [token_rows(f"src_layers[{i}]", t) for i, t in enumerate(src_layers)]
    _move(dst, dst_indices, src, src_indices)


def _check_item(item_size: int) -> None:
    checks.at_least("item_size", item_size, 1)
    checks.multiple_of("item_size", item_size, _WORD, "the kernel moves 8-byte words")


def _check_tables(num_layers: int, **tables: Sequence[torch.Tensor]) -> None:
    for name, table in tables.items():
        checks.equal(f"len({name})", len(table), num_layers, "num_layers")


def _page_first(name: str, tensor: torch.Tensor, layer: int, item_size: int, layout_dim: int) -> Rows:
    checks.multiple_of(f"{name}_layout_dim", layout_dim, item_size, "a token is a row for each layer")
    checks.index_below("layer_id", layer, layout_dim // item_size)
    base = layer * item_size
    return strided_rows(f"{name} layer {layer}", tensor, base=base, stride=layout_dim, item_size=item_size)
