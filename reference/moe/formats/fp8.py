"""fp8 in its four encodings, with one scale for a tensor, for each row, or for each block of a matrix.

Source: FACTS.md section 3 and OCP OFP8 1.0 for e4m3fn and e5m2; the fnuz encodings (AMD CDNA3) have one zero, no
infinity, 0x80 for NaN and a bias larger by one. A quantised value times its scale is the number: the scale is what
SGLang calls `weight_scale` or `weight_scale_inv`.
"""

from __future__ import annotations

from typing import Final

import torch

ENCODINGS: Final = {
    "e4m3fn": torch.float8_e4m3fn,
    "e5m2": torch.float8_e5m2,
    "e4m3fnuz": torch.float8_e4m3fnuz,
    "e5m2fnuz": torch.float8_e5m2fnuz,
}
# DeepSeek-V3's weight blocks: rows x columns.
BLOCK: Final = (128, 128)
_FNUZ_NAN: Final = 0x80


def largest(encoding: str) -> float:
    """Return the largest finite number: 448, 57344, 240 or 57344; ValueError for an unknown encoding."""
    if encoding not in ENCODINGS:
        msg = f"encoding={encoding!r}; expected one of {', '.join(ENCODINGS)}"
        raise ValueError(msg)
    return torch.finfo(ENCODINGS[encoding]).max


def _spread(scales: torch.Tensor, shape: torch.Size, block: tuple[int, int]) -> torch.Tensor:
    rows, columns = shape[-2:]
    expected = (*shape[:-2], -(-rows // block[0]), -(-columns // block[1]))
    if tuple(scales.shape) != expected:
        msg = f"scales {tuple(scales.shape)} do not fit {tuple(shape)} in blocks of {block}; expected {expected}"
        raise ValueError(msg)
    wide = scales.repeat_interleave(block[0], -2).repeat_interleave(block[1], -1)
    return wide[..., :rows, :columns]


def quantize(values: torch.Tensor, encoding: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantise with one scale, amax / largest; returns (fp8 like `values`, float32 scalar). All zero has scale 1."""
    scale = values.float().abs().amax() / largest(encoding)
    scale = torch.where(scale > 0, scale, 1.0)
    return (values.float() / scale).clamp(-largest(encoding), largest(encoding)).to(ENCODINGS[encoding]), scale


def quantize_blocks(
    values: torch.Tensor, encoding: str, block: tuple[int, int] = BLOCK
) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantise a matrix (..., n, k) with a scale for each block; the last blocks may be smaller.

    Returns fp8 (..., n, k) and float32 scales (..., ceil(n / block[0]), ceil(k / block[1])). A block (1, 128) is the
    per-token-group form of activations.
    """
    rows, columns = values.shape[-2:]
    padded = torch.nn.functional.pad(values.float(), (0, -columns % block[1], 0, -rows % block[0]))
    tall, wide = (size // side for size, side in zip(padded.shape[-2:], block, strict=True))
    tiles = padded.abs().reshape(*padded.shape[:-2], tall, block[0], wide, block[1])
    scales = tiles.amax(dim=(-1, -3)) / largest(encoding)
    scales = torch.where(scales > 0, scales, 1.0)
    scaled = values.float() / _spread(scales, values.shape, block)
    return scaled.clamp(-largest(encoding), largest(encoding)).to(ENCODINGS[encoding]), scales


def dequantize(values: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Return float32 of fp8 values with one scale."""
    return values.float() * scale.float()


def dequantize_blocks(values: torch.Tensor, scales: torch.Tensor, block: tuple[int, int] = BLOCK) -> torch.Tensor:
    """Return float32 (..., n, k) of fp8 values and block scales; ValueError when the shapes do not fit."""
    return values.float() * _spread(scales.float(), values.shape, block)


def fn_to_fnuz(values: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Re-read e4m3fn bits as e4m3fnuz, as ROCm needs it: the same bits mean half, so the scale doubles.

    Minus zero (0x80) would be NaN and becomes zero. Infinity does not exist in either. Values whose bits are NaN in
    e4m3fn (0x7f, 0xff) are refused with ValueError: they would become finite numbers.
    """
    bits = values.view(torch.uint8)
    if bool(values.float().isnan().any()):
        msg = "e4m3fn NaN has no counterpart with the same bits in e4m3fnuz; expected finite weights"
        raise ValueError(msg)
    return torch.where(bits == _FNUZ_NAN, 0, bits).to(torch.uint8).view(torch.float8_e4m3fnuz), scale * 2
