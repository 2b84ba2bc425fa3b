"""CPU view of tensors on the emulated `npu` device."""

from __future__ import annotations

import torch


def raw(t: torch.Tensor) -> torch.Tensor:
    """Zero-copy CPU alias of a tensor on the emulated device; the tensor itself when it is on the CPU."""
    if t.device.type == "cpu":
        return t
    alias: torch.Tensor = torch.ops.poolparity_npu.alias(t)
    return alias
