"""Which device buffers an io backend needs: the decision at the heart of the project, in one place.

`kernel` and `direct` address each layer by itself: they need the list of layer tensors and its pointer table, target
layers first, then one layer a draft. `kernel_ascend` moves whole (layers, pages, ...) tensors: it needs no pointer
table and must never touch one, because Ascend's pools have none. Target and drafts are separate allocations there, so
each is exchanged against its own slice of the host's layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch

from reference.device_pool import DevicePool, MLATokenToKVPool, NPUMLATokenToKVPool


@dataclass(frozen=True, slots=True)
class LayerTables:
    """Layer tensors in host layer order, and their addresses (uint64)."""

    layers: tuple[torch.Tensor, ...]
    data_ptrs: torch.Tensor


@dataclass(frozen=True, slots=True)
class SplitTensors:
    """The tensors of each pool by component: target first, then the drafts."""

    pools: tuple[dict[str, torch.Tensor], ...]


def needed_buffers(io_backend: str, target: DevicePool, drafts: Sequence[DevicePool]) -> LayerTables | SplitTensors:
    """Return what an io backend works on, and touch nothing else.

    Raises ValueError for an unknown io backend, and for pools of another kind than the backend moves.
    """
    pools = (target, *drafts)
    if io_backend == "kernel_ascend":
        return SplitTensors(tuple(pool.tensors for pool in _all_are(NPUMLATokenToKVPool, pools, io_backend)))
    if io_backend in ("kernel", "direct"):
        latent = _all_are(MLATokenToKVPool, pools, io_backend)
        tensors = tuple(tensor for pool in latent for tensor in pool.kv_buffer)
        return LayerTables(tensors, torch.cat([pool.data_ptrs for pool in latent]))
    msg = f"Unsupported IO backend: io_backend={io_backend!r}; expected kernel, direct or kernel_ascend"
    raise ValueError(msg)


_PoolT = TypeVar("_PoolT", bound=DevicePool)


def _all_are(kind: type[_PoolT], pools: Sequence[DevicePool], io_backend: str) -> list[_PoolT]:
    for pool in pools:
        if not isinstance(pool, kind):
            msg = f"Unsupported IO backend: {io_backend} moves {kind.__name__}; got {type(pool).__name__}"
            raise ValueError(msg)  # noqa: TRY004 - SGLang's callers expect ValueError of a pool and backend mismatch
    return [pool for pool in pools if isinstance(pool, kind)]
