"""The routed experts: gate and up projection, activation, down projection, weighted sum over the chosen experts.

Computed in float64 for truth, or in a narrower dtype with the roundings of the real kernels for parity. Source:
FACTS.md section 5, and the papers and reference codes of the models: SwiGLU (DeepSeek, Kimi), GELU (Grok), and the
clamped SwiGLU of GPT-OSS, (up + 1) * gate * sigmoid(1.702 * gate) with gate and up held within a limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import torch

ACTIVATIONS: Final = ("silu", "gelu", "gelu_tanh", "swiglu_oai")
GPT_OSS_ALPHA: Final = 1.702
GPT_OSS_LIMIT: Final = 7.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertSpec:
    """How an expert computes. `limit` clamps gate from above and up from both sides, before the activation.

    `weights_on`: the top-k weights multiply the experts' "output", or their "input" (Llama-4).
    """

    activation: str = "silu"
    limit: float | None = None
    alpha: float = GPT_OSS_ALPHA
    weights_on: Literal["output", "input"] = "output"


def activate(gate: torch.Tensor, up: torch.Tensor, spec: ExpertSpec) -> torch.Tensor:
    """Return the activated product of gate and up, in their dtype; ValueError for an unknown activation."""
    if spec.limit is not None:
        gate, up = gate.clamp(max=spec.limit), up.clamp(-spec.limit, spec.limit)
    if spec.activation == "silu":
        return torch.nn.functional.silu(gate) * up
    if spec.activation == "gelu":
        return torch.nn.functional.gelu(gate) * up
    if spec.activation == "gelu_tanh":
        return torch.nn.functional.gelu(gate, approximate="tanh") * up
    if spec.activation == "swiglu_oai":
        return (up + 1) * gate * torch.sigmoid(spec.alpha * gate)
    msg = f"activation={spec.activation!r}; expected one of {', '.join(ACTIVATIONS)}"
    raise ValueError(msg)


def _check(x: torch.Tensor, w13: torch.Tensor, w2: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor) -> None:
    experts, double, hidden = w13.shape
    if (x.shape[-1], w2.shape) != (hidden, (experts, hidden, double // 2)) or double % 2:
        msg = (
            f"tokens {tuple(x.shape)}, w13 {tuple(w13.shape)} and w2 {tuple(w2.shape)} do not fit; expected "
            "(tokens, hidden), (experts, 2 * intermediate, hidden) and (experts, hidden, intermediate)"
        )
        raise ValueError(msg)
    if ids.shape != weights.shape or len(ids) != len(x):
        msg = f"ids {tuple(ids.shape)} and weights {tuple(weights.shape)} do not fit {len(x)} tokens"
        raise ValueError(msg)
    if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < experts:
        msg = f"expert ids reach from {int(ids.min())} to {int(ids.max())}; expected 0 to {experts - 1}"
        raise ValueError(msg)


def _one(x: torch.Tensor, w13: torch.Tensor, w2: torch.Tensor, spec: ExpertSpec, store: torch.dtype) -> torch.Tensor:
    """One expert on its tokens, in x's dtype; each stage is stored in `store` once."""
    gate, up = (x @ w13.T).to(store).to(x.dtype).chunk(2, dim=-1)
    return activate(gate, up, spec).to(store).to(x.dtype) @ w2.T


def run_experts(
    x: torch.Tensor,
    w13: torch.Tensor,
    w2: torch.Tensor,
    ids: torch.Tensor,
    weights: torch.Tensor,
    spec: ExpertSpec,
    *,
    compute: torch.dtype = torch.float64,
    store: torch.dtype | None = None,
) -> torch.Tensor:
    """Return the weighted sum of the chosen experts, (tokens, hidden) in `compute`.

    `x`: (tokens, hidden); `w13`: (experts, 2 * intermediate, hidden), gate above up; `w2`: (experts, hidden,
    intermediate); `ids` and `weights`: (tokens, top_k). Products accumulate in `compute`; what a kernel writes to
    memory between its stages is rounded to `store` (default: not rounded). Raises ValueError when shapes or ids do not
    fit.
    """
    _check(x, w13, w2, ids, weights)
    kept = compute if store is None else store
    terms = torch.zeros(*ids.shape, x.shape[-1], dtype=compute)
    for expert in sorted(set(ids.flatten().tolist())):
        tokens, column = (ids == expert).nonzero(as_tuple=True)
        scale = weights[tokens, column].to(compute).unsqueeze(-1)
        rows = x[tokens].to(compute)
        rows = (rows * scale).to(kept).to(compute) if spec.weights_on == "input" else rows
        out = _one(rows, w13[expert].to(compute), w2[expert].to(compute), spec, kept)
        out = out * scale if spec.weights_on == "output" else out
        terms[tokens, column] = out.to(kept).to(compute)
    return terms.sum(dim=1)
