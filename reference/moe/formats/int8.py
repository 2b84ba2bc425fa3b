"""int8 W8A8: weights with a scale for each output channel, activations with a scale for each token, both symmetric.

The product is exact in int32 (a sum of k products of magnitude at most 127 * 127), and each scale multiplies once.
"""

from __future__ import annotations

from typing import Final

import torch

LARGEST: Final = 127
# Up to here a sum of products fits in int32.
_LONGEST: Final = (2**31 - 1) // LARGEST**2


def quantize_rows(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantise each row of (..., k) to int8 with float32 scales (..., 1), amax / 127; a zero row has scale 1.

    Rounds to nearest, ties to even.
    """
    scales = values.float().abs().amax(dim=-1, keepdim=True) / LARGEST
    scales = torch.where(scales > 0, scales, 1.0)
    return (values.float() / scales).round().clamp(-LARGEST, LARGEST).to(torch.int8), scales


def dequantize_rows(values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Return float32 (..., k) of int8 values and scales (..., 1)."""
    return values.float() * scales.float()


def matmul(
    tokens: torch.Tensor, token_scales: torch.Tensor, weights: torch.Tensor, channel_scales: torch.Tensor
) -> torch.Tensor:
    """Multiply int8 (m, k) by int8 (n, k) transposed; float64 (m, n), the integer sum exact.

    Scales are (m, 1) and (n, 1). Raises ValueError for other dtypes, or k so long that int32 would overflow.
    """
    if tokens.dtype is not torch.int8 or weights.dtype is not torch.int8:
        msg = f"operands are {tokens.dtype} and {weights.dtype}; expected torch.int8 for both"
        raise ValueError(msg)
    if tokens.shape[-1] != weights.shape[-1] or tokens.shape[-1] > _LONGEST:
        msg = f"inner sizes are {tokens.shape[-1]} and {weights.shape[-1]}; expected equal ones up to {_LONGEST}"
        raise ValueError(msg)
    # Products and sums stay below 2**31, which float64 holds exactly.
    exact = tokens.double() @ weights.double().T
    return exact * token_scales.double() * channel_scales.double().T
