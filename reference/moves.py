"""Which transfer moves a latent pool, for each io backend and layout (FACTS.md section 2.2).

Only legal pairs get here; `reference.support` refuses the others before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from reference import transfer
from reference.layouts import HostLayout
from reference.transfer import Exchange, TransferDirection

# The staged write-back kernel moves 16-byte vectors (FACTS.md section 4.2).
_STAGED_ALIGNMENT = 16


class Latent(NamedTuple):
    """A latent host buffer and how to move it. `tensor` has the layout's shape, in uint8 elements."""

    layout: str
    tensor: torch.Tensor
    row_bytes: int
    layers: int
    page_size: int
    jit: bool
    sharded: bool

    def layer_rows(self) -> list[torch.Tensor]:
        """Layer by layer (slots, 1, row_bytes), of the token-granular layouts: strided views in page_first."""
        return list(self.tensor.unbind(0 if self.layout == "layer_first" else 1))


def backup_latent(
    io_backend: str,
    host: Latent,
    device: Sequence[torch.Tensor],
    host_indices: torch.Tensor,
    device_indices: torch.Tensor,
) -> None:
    """Device to host, all layers."""
    if io_backend == "direct" and host.layout == "layer_first":
        transfer.direct(device, host.layer_rows(), device_indices, host_indices, host.page_size)
    elif io_backend == "direct":
        transfer.direct_lf_pf(device, host.tensor, device_indices, host_indices, host.page_size)
    elif host.sharded and (host.jit or host.layout == "layer_first"):
        for target, source in zip(host.layer_rows(), device, strict=True):
            transfer.one_layer(target, source, host_indices, device_indices)
    elif host.layout == "layer_first":
        transfer.all_layer(device, host.layer_rows(), device_indices, host_indices, host.row_bytes, host.layers)
    elif host.jit and host.row_bytes % _STAGED_ALIGNMENT == 0:
        transfer.staged_lf_pf(device, host.tensor, device_indices, host_indices, host.page_size)
    else:
        dim = host.row_bytes * host.layers
        transfer.lf_pf(device, host.tensor, device_indices, host_indices, host.row_bytes, dim, host.layers)


def load_latent(
    io_backend: str,
    host: Latent,
    device: torch.Tensor,
    at: int,
    host_indices: torch.Tensor,
    device_indices: torch.Tensor,
) -> None:
    """Host to device, one layer; `at` is its position in the host buffer, `device` the layer's tensor."""
    if io_backend == "direct" and host.layout == "layer_first":
        transfer.direct([host.tensor[at]], [device], host_indices, device_indices, host.page_size)
    elif io_backend == "direct":
        transfer.direct_pf_lf(host.tensor, device, host_indices, device_indices, at, host.page_size)
    elif host.jit:
        transfer.one_layer(device, host.layer_rows()[at], device_indices, host_indices)
    elif host.layout == "layer_first":
        transfer.per_layer(host.tensor[at], device, host_indices, device_indices, host.row_bytes)
    else:
        dim = host.row_bytes * host.layers
        transfer.pf_lf(host.tensor, device, host_indices, device_indices, at, host.row_bytes, dim)


class Span(NamedTuple):
    """Layers of one component that lie in one device pool: `layers` of them, from device and host position on."""

    component: str
    pool: int
    device_at: int
    host_at: int
    layers: int


def spans(layout: HostLayout, only: int | None = None) -> list[Span]:
    """Return how host layers map to the split pools (0 is the target, then the drafts): all of them, or one layer."""
    found: list[Span] = []
    targets = layout.geometry.layers
    for part in layout.components:
        name, layers = part.name, part.layers
        own = sum(layer < targets for layer in layers)
        every = [Span(name, 0, 0, 0, own)] + [Span(name, 1 + i, 0, own + i, 1) for i in range(len(layers) - own)]
        if only is None:
            found += every
        elif only in layers:
            at = layers.index(only)
            found.append(Span(name, 0, at, at, 1) if at < own else every[1 + at - own])
    return found


def exchange_split(
    pools: Sequence[dict[str, torch.Tensor]],
    host: dict[str, torch.Tensor],
    where: Sequence[Span],
    direction: TransferDirection,
    host_indices: torch.Tensor,
    device_indices: torch.Tensor,
) -> None:
    """Exchange some spans of split pools with the split host buffers, in one checked transfer.

    `host` tensors are (pages, layers, page_size, 1, row elements). Target and drafts are separate allocations, so each
    meets its own slice of the host's layers.
    """
    parts = [
        Exchange(
            s.component,
            pools[s.pool][s.component][s.device_at : s.device_at + s.layers],
            host[s.component][:, s.host_at : s.host_at + s.layers],
        )
        for s in where
    ]
    transfer.dim_exchange(parts, device_indices, host_indices, host["k"].shape[2], direction)
