"""The dtypes of a KV pool: what it computes in, what it stores, and how wide an element is."""

from __future__ import annotations

from typing import Final

import torch

TORCH_DTYPES: Final[dict[str, torch.dtype]] = {
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp32": torch.float32,
    "fp8_e4m3": torch.float8_e4m3fn,
    "fp8_e5m2": torch.float8_e5m2,
}


def torch_dtype(name: str) -> torch.dtype:
    """Return the torch dtype of a pool dtype; ValueError naming the known ones."""
    try:
        return TORCH_DTYPES[name]
    except KeyError:
        msg = f"dtype={name!r} is not a pool dtype; expected one of {', '.join(TORCH_DTYPES)}"
        raise ValueError(msg) from None


def store_dtype(name: str) -> torch.dtype:
    """Return the dtype of the stored tensors: uint8 for fp8, else the dtype itself (FACTS.md section 3)."""
    return torch.uint8 if name.startswith("fp8") else torch_dtype(name)
