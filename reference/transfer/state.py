"""Mamba states: one row a request slot, of any dtype and row shape; page-first is (slots, layers, 1, ...).

Sources: FACTS.md sections 1.5 and 4.3 (transfer_state_* of sgl_kernel_npu, transfer_kv_mamba_* elsewhere).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from reference import checks
from reference.transfer.indices import check_pair
from reference.transfer.rows import copy_rows, token_rows


def state_lf_pf(
    src_layers: Sequence[torch.Tensor], dst: torch.Tensor, src_indices: torch.Tensor, dst_indices: torch.Tensor
) -> None:
    """transfer_state_all_layer_direct_lf_pf: dst[dst_indices[i], l, 0] becomes src_layers[l][src_indices[i]]."""
    checks.equal("len(src_layers)", len(src_layers), dst.shape[1], "the layers of dst")
    sources = [token_rows(f"src_layers[{i}]", t) for i, t in enumerate(src_layers)]
    targets = [token_rows(f"dst layer {i}", dst[:, i]) for i in range(len(src_layers))]
    for target, source in zip(targets, sources, strict=True):
        checks.equal(f"row bytes of {source.name}", source.row_bytes, target.row_bytes, "the row bytes of dst")
    check_pair("dst_indices", dst_indices, dst.shape[0], "src_indices", src_indices, min(s.count for s in sources))
    for target, source in zip(targets, sources, strict=True):
        copy_rows(target, dst_indices, source, src_indices)


def state_pf_lf(
    src: torch.Tensor, dst: torch.Tensor, src_indices: torch.Tensor, dst_indices: torch.Tensor, layer_id: int
) -> None:
    """transfer_state_per_layer_direct_pf_lf: dst[dst_indices[i]] becomes src[src_indices[i], layer_id, 0]."""
    checks.index_below("layer_id", layer_id, src.shape[1])
    target, source = token_rows("dst", dst), token_rows("src", src[:, layer_id])
    checks.equal("row bytes of dst", target.row_bytes, source.row_bytes, "the row bytes of src")
    check_pair("dst_indices", dst_indices, target.count, "src_indices", src_indices, source.count)
    copy_rows(target, dst_indices, source, src_indices)
