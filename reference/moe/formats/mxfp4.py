"""MXFP4: 4-bit floats (E2M1) in blocks of 32 that share one power of two (E8M0), in its two byte layouts.

Source: the OCP Microscaling Formats specification 1.0, sections 5.3 and 6.3; FACTS.md section 5.6 for the GGUF layout.
OCP: two neighbours a byte, the earlier in the low nibble, scales apart. GGUF: 17 bytes a block, first the scale, then
16 bytes whose low nibbles are elements 0..15 and whose high nibbles are elements 16..31.
"""

from __future__ import annotations

from typing import Final

import ml_dtypes
import numpy as np
import numpy.typing as npt
import torch

from reference.moe.formats.blocks import blocks_of

BLOCK: Final = 32
GGUF_BLOCK_BYTES: Final = 17
# The values of the codes 0..15 (bit 3 is the sign), and the largest of them.
E2M1: Final = torch.from_numpy(np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float32))
E2M1_MAX: Final = 6.0
_E8M0_BIAS: Final = 127
_E8M0_NAN: Final = 255


def _check_bytes(name: str, tensor: torch.Tensor) -> None:
    if tensor.dtype is not torch.uint8:
        msg = f"{name} is {tensor.dtype}; expected torch.uint8"
        raise ValueError(msg)


def e8m0(scales: torch.Tensor) -> torch.Tensor:
    """Return the float32 values of E8M0 bytes: 2**(byte - 127), and NaN for 255."""
    _check_bytes("scales", scales)
    values: npt.NDArray[np.float32] = scales.numpy().view(ml_dtypes.float8_e8m0fnu).astype(np.float32)
    return torch.from_numpy(values)


def unpack(packed: torch.Tensor) -> torch.Tensor:
    """Return the codes 0..15 of OCP bytes (..., n/2) as uint8 (..., n): low nibble first."""
    _check_bytes("packed", packed)
    return torch.stack([packed & 0x0F, packed >> 4], dim=-1).flatten(-2)


def pack(codes: torch.Tensor) -> torch.Tensor:
    """Return OCP bytes (..., n/2) of codes 0..15 (..., n); the inverse of `unpack`."""
    _check_bytes("codes", codes)
    pairs = blocks_of(codes, 2)
    return pairs[..., 0] | (pairs[..., 1] << 4)


def dequantize(packed: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Return float32 (..., n) of OCP bytes (..., n/2) and E8M0 scales (..., n/32); exact.

    Raises ValueError when the shapes do not belong together.
    """
    codes = unpack(packed)
    if codes.shape != (*scales.shape[:-1], scales.shape[-1] * BLOCK):
        msg = (
            f"{tuple(packed.shape)} bytes hold values {tuple(codes.shape)}, which do not fit scales "
            f"{tuple(scales.shape)}; expected one scale for {BLOCK} values"
        )
        raise ValueError(msg)
    values = blocks_of(E2M1[codes.long()], BLOCK)
    return (values * e8m0(scales).unsqueeze(-1)).flatten(-2)


def quantize(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantise (..., n) to OCP bytes (..., n/2) and E8M0 scales (..., n/32), n a multiple of 32.

    The scale is the specification's: the largest power of two that is not above the block's maximum, over that of
    E2M1 (4). Elements round to nearest, ties to even, and saturate at 6.
    """
    blocks = blocks_of(values.float(), BLOCK)
    largest = blocks.abs().amax(dim=-1)
    _, exponent = torch.frexp(largest)  # largest = m * 2**exponent with m in [0.5, 1)
    biased = torch.where(largest > 0, exponent - 1 - 2 + _E8M0_BIAS, 0).clamp(0, _E8M0_NAN - 1).to(torch.uint8)
    scaled = (blocks.double() / e8m0(biased).double().unsqueeze(-1)).clamp(-E2M1_MAX, E2M1_MAX)
    codes = scaled.float().numpy().astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    return pack(torch.from_numpy(codes).flatten(-2)), biased


def to_gguf(packed: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Return GGUF blocks (..., n/32 * 17) of the OCP layout; no value changes."""
    codes = blocks_of(unpack(packed), BLOCK)
    low, high = codes[..., : BLOCK // 2], codes[..., BLOCK // 2 :]
    return torch.cat([scales.unsqueeze(-1), low | (high << 4)], dim=-1).flatten(-2)


def from_gguf(blocks: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return OCP (packed, scales) of GGUF blocks (..., k * 17); ValueError when the bytes are no whole blocks."""
    _check_bytes("blocks", blocks)
    rows = blocks_of(blocks, GGUF_BLOCK_BYTES)
    nibbles = rows[..., 1:]
    codes = torch.cat([nibbles & 0x0F, nibbles >> 4], dim=-1)
    return pack(codes.flatten(-2)), rows[..., 0].contiguous()
