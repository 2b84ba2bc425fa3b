"""The ggml types that SGLang's MoE kernels take, dequantised with the gguf package, and Q8_1, which it lacks.

Source: FACTS.md section 5.4 for the types of `ggml_moe_a8_vec`. Q8_1 is what its kernel makes of activations: blocks of
32 with d = amax / 127 in fp16, the plain sum of the block in fp16, and int8 rounded half away from zero (C's roundf).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import gguf
import numpy as np
import numpy.typing as npt
import torch

from reference.moe.formats.blocks import blocks_of

Q8_1_BLOCK: Final = 32
# ggml's numbers of the types that ggml_moe_a8_vec takes.
MOE_VEC_TYPES: Final = {
    name: int(gguf.GGMLQuantizationType[name])
    for name in (
        "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ2_XXS", "IQ2_XS", "IQ3_XXS",
        "IQ1_S", "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS", "IQ1_M",
    )
}  # fmt: skip


def _type(name: str) -> gguf.GGMLQuantizationType:
    if name not in MOE_VEC_TYPES and name != "MXFP4":
        msg = f"type={name!r} is none that SGLang's ggml MoE kernels take; expected one of {', '.join(MOE_VEC_TYPES)}"
        raise ValueError(msg)
    return gguf.GGMLQuantizationType[name]


def row_bytes(name: str, elements: int) -> int:
    """Return the bytes of a row of so many elements; ValueError when they are no whole blocks."""
    block, size = gguf.GGML_QUANT_SIZES[_type(name)]
    if elements % block:
        msg = f"{elements} elements are no whole number of {block}-element {name} blocks"
        raise ValueError(msg)
    return elements // block * int(size)


def dequantize(rows: torch.Tensor, name: str) -> torch.Tensor:
    """Return float32 (..., n) of raw rows, uint8 (..., bytes)."""
    values: npt.NDArray[np.float32] = gguf.quants.dequantize(rows.numpy(), _type(name))
    return torch.from_numpy(values)


@dataclass(frozen=True, slots=True)
class Q8_1:  # noqa: N801 - ggml's name for it
    """Quantised activations: int8 (..., n), and for each block of 32 the fp16 scale `d` and plain sum `s`."""

    values: torch.Tensor
    d: torch.Tensor
    s: torch.Tensor

    def dequantize(self) -> torch.Tensor:
        """Return float32 (..., n)."""
        blocks = blocks_of(self.values, Q8_1_BLOCK).float()
        return (blocks * self.d.float().unsqueeze(-1)).flatten(-2)


def quantize_q8_1(values: torch.Tensor) -> Q8_1:
    """Quantise activations (..., n), n a multiple of 32; ValueError otherwise.

    The int8 values come of the float32 scale, before it is stored in fp16, as in the kernel.
    """
    blocks = blocks_of(values.float(), Q8_1_BLOCK)
    scale = blocks.abs().amax(dim=-1, keepdim=True) / 127
    quotient = torch.where(scale > 0, blocks / scale, 0.0).numpy()
    rounded = np.sign(quotient) * np.floor(np.abs(quotient) + np.float32(0.5))
    codes = torch.from_numpy(rounded.astype(np.int8)).flatten(-2)
    return Q8_1(codes, scale.squeeze(-1).half(), blocks.sum(dim=-1).half())


def moe_vec(tokens: torch.Tensor, weights: torch.Tensor, topk_ids: torch.Tensor, name: str) -> torch.Tensor:
    """Return what `ggml_moe_a8_vec` computes: float64 (tokens * top_k, rows).

    `tokens`: (tokens, k). `weights`: uint8 (experts, rows, bytes of a row of k). `topk_ids`: (tokens, top_k);
    a negative id gives a row of zeros (0.5.23). Activations pass through Q8_1.
    """
    if weights.shape[-1] != row_bytes(name, tokens.shape[-1]):
        msg = (
            f"weight rows of {weights.shape[-1]} bytes; expected {row_bytes(name, tokens.shape[-1])} for "
            f"{tokens.shape[-1]} elements of {name}"
        )
        raise ValueError(msg)
    activations = quantize_q8_1(tokens).dequantize().double()
    matrices = dequantize(weights, name).double()
    ids = topk_ids.flatten().long()
    if int(ids.max()) >= len(matrices):
        msg = f"expert {int(ids.max())} of {len(matrices)} was asked for"
        raise ValueError(msg)
    tokens_of = torch.arange(len(topk_ids)).repeat_interleave(topk_ids.shape[1])
    products = torch.einsum("rnk,rk->rn", matrices[ids.clamp(min=0)], activations[tokens_of])
    return torch.where(ids.unsqueeze(-1) < 0, 0.0, products)
