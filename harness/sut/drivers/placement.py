"""Where SGLang's cache controller puts indices before it calls a host pool (FACTS.md section 2.3).

The pool itself moves nothing, so whoever drives it must do as `HiCacheController.move_indices` does.
"""

from __future__ import annotations

import torch

Pair = tuple[torch.Tensor, torch.Tensor]


def place(
    io_backend: str, layout: str, host: torch.Tensor, device: torch.Tensor, *, on: str, staged: bool = False
) -> Pair:
    """Return (host, device) indices as the controller hands them to the pool.

    `on` is the pool's torch device; `staged` says that this is a write-back through the staged JIT kernel, which reads
    host indices on the CPU. Both arguments are int64 CPU tensors. An unknown backend gets them as they are, so that
    the pool's own refusal is seen.
    """
    if io_backend == "kernel":
        return (host if staged else host.to(on)), device.to(on)
    if io_backend == "direct" and layout == "layer_first":
        host, order = host.sort()
        return host, device.index_select(0, order)
    return host, device
