"""The device pools of a SUT as planes of rows: one tensor a layer (latent), or Ascend's k, v, index_k and scale."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from harness.emulation.raw import raw


class DevicePlane(NamedTuple):
    """One component of one layer: its tensor on the device, (slots, row elements) after flattening, and its layer."""

    component: str
    layer: int
    tensor: torch.Tensor


def rows_of(tensor: torch.Tensor) -> torch.Tensor:
    """View a contiguous device tensor of rows as uint8 (slots, row_bytes): CPU memory, or on its real device."""
    flat = raw(tensor) if _aliased(tensor) else tensor
    return flat.reshape(-1, flat.shape[-1]).view(torch.uint8)


def _aliased(tensor: torch.Tensor) -> bool:
    return tensor.device.type == "cpu" or hasattr(torch.ops.poolparity_npu, "alias")


def latent_planes(pool: Any, first_layer: int) -> Iterator[DevicePlane]:
    """Planes of a pool that has one latent tensor a layer, (slots, 1, row elements)."""
    for i, tensor in enumerate(pool.kv_buffer):
        yield DevicePlane("latent", first_layer + i, tensor.view(tensor.shape[0], -1))


def split_planes(pool: Any, first_layer: int, indexer_layers: tuple[int, ...]) -> Iterator[DevicePlane]:
    """Planes of an Ascend pool: (layers, pages, page, 1, width) tensors; an empty component has no planes."""
    for component, name, layers in (
        ("k", "k_buffer", range(pool.layer_num)),
        ("v", "v_buffer", range(pool.layer_num)),
        ("index_k", "index_k_buffer", indexer_layers),
        ("scale", "index_k_scale_buffer", indexer_layers),
    ):
        tensor = getattr(pool, name, None)
        if tensor is None or tensor.numel() == 0:
            continue
        for position, layer in enumerate(layers):
            part = tensor[position]
            yield DevicePlane(component, first_layer + layer, part.reshape(part.shape[0] * part.shape[1], -1))
