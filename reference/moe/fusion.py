"""The last step of a MoE layer: who applies the routed scaling factor, who adds the shared expert, and in which tensor.

Source: FACTS.md sections 5.1 to 5.4, read from releases 0.5.16 to 0.5.23. Two forms of the same meaning stand here:
a truth table (`rule`, `expected`) and the step itself, in place (`maybe_fuse_routed_scale_and_shared_add`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import torch

Side = Literal["routed", "shared"]
PLAIN: Final = "plain"


@dataclass(frozen=True, slots=True)
class FusedMethod:
    """A quantisation method that leaves the routed scaling factor to the last step.

    `module` and `class_name` are where SGLang has it. `serves` are the platforms with kernels for it; the class itself
    is imported by the last step on every platform, so it must be importable on all of them.
    """

    key: str
    module: str
    class_name: str
    serves: frozenset[str]


_QUANTIZATION: Final = "sglang.srt.layers.quantization"
_CUDA: Final = frozenset({"cuda"})
FUSED_METHODS: Final = {
    method.key: method
    for method in (
        FusedMethod(  # FlashInfer's TRT-LLM kernels
            "mxfp4_flashinfer_trtllm",
            f"{_QUANTIZATION}.mxfp4_flashinfer_trtllm_moe",
            "Mxfp4FlashinferTrtllmMoEMethod",
            _CUDA,
        ),
        FusedMethod(  # FlashInfer's CUTLASS kernels
            "mxfp4_flashinfer_cutlass",
            f"{_QUANTIZATION}.mxfp4_flashinfer_cutlass_moe",
            "Mxfp4FlashinferCutlassMoEMethod",
            _CUDA,
        ),
        FusedMethod(  # Marlin: its Python front binds the kernels on CUDA alone
            "mxfp4_marlin", f"{_QUANTIZATION}.mxfp4_marlin_moe", "Mxfp4MarlinMoEMethod", _CUDA
        ),
        FusedMethod(  # JIT CUDA kernels, and ggml_moe_a8_vec of the CUDA kernel package
            "expert_pack", f"{_QUANTIZATION}.expert_pack", "ExpertPackMoEMethod", _CUDA
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Generation:
    """What one generation of the last step knows: its fused methods, and whether it reads the already-scaled flag."""

    name: str
    methods: tuple[str, ...]
    reads_flag: bool

    def fuses(self, method: str) -> bool:
        """Whether `method` leaves the factor to the last step; ValueError for a method that nobody knows."""
        if method != PLAIN and method not in FUSED_METHODS:
            msg = f"method={method!r} is not known; expected {PLAIN} or one of {', '.join(FUSED_METHODS)}"
            raise ValueError(msg)
        return method in self.methods


# 0.5.16 to 0.5.18: three fused methods, which never have the factor applied by top-k.
WITHOUT_FLAG: Final = Generation(
    "without the already-scaled flag", ("mxfp4_flashinfer_trtllm", "mxfp4_flashinfer_cutlass", "mxfp4_marlin"), False
)
# From 0.5.19 on: expert_pack is fused too, and top-k may have applied the factor already.
WITH_FLAG: Final = Generation("with the already-scaled flag", tuple(FUSED_METHODS), True)


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the truth table.

    The value is `shared (if adds_shared) + routed * factor**exponent`; it is returned in the tensor `returned`, which
    is the same object as the argument. `mutated` is the argument that now holds the value; the other is untouched.
    """

    exponent: Literal[0, 1]
    adds_shared: bool
    returned: Side
    mutated: Side | None

    def __str__(self) -> str:
        product = "factor * routed" if self.exponent else "routed"
        return f"shared + {product}" if self.adds_shared else product


def rule(generation: Generation, method: str, *, shared: bool, already_scaled: bool) -> Rule:
    """Return the row for a quantisation method; `already_scaled` counts only where the generation reads it."""
    if not generation.fuses(method):
        return Rule(0, shared, "routed", "routed" if shared else None)
    exponent: Literal[0, 1] = 0 if generation.reads_flag and already_scaled else 1
    if shared:
        return Rule(exponent, True, "shared", "shared")
    return Rule(exponent, False, "routed", "routed" if exponent else None)


def expected(row: Rule, routed: torch.Tensor, shared: torch.Tensor | None, factor: float) -> torch.Tensor:
    """Return the value as a new tensor, in the tensors' dtype and with the roundings of the real step.

    A factor and an addend are one `add` with alpha: one rounding where the device computes in fp32.
    """
    alpha = factor if row.exponent else 1.0
    if row.adds_shared:
        if shared is None:
            msg = f"the row {row} adds a shared output and shared is None; give both tensors"
            raise ValueError(msg)
        return torch.add(shared, routed, alpha=alpha) if row.returned == "shared" else torch.add(routed, shared)
    return torch.mul(routed, alpha) if row.exponent else routed.clone()


@dataclass(frozen=True, slots=True)
class QuantMethod:
    """A stand-in for a quantisation method of the reference: nothing but its key."""

    key: str


@dataclass(frozen=True, slots=True)
class ReferenceExperts:
    """An experts layer of the reference, as far as the last step looks at it."""

    quant_method: QuantMethod
    should_fuse_routed_scaling_factor_in_topk: bool = False


def _check(routed: torch.Tensor, shared: torch.Tensor | None, factor: float) -> None:
    if not math.isfinite(factor):
        msg = f"routed_scaling_factor={factor!r}; expected a finite number"
        raise ValueError(msg)
    if shared is not None and (shared.shape, shared.dtype) != (routed.shape, routed.dtype):
        msg = (
            f"shared is {tuple(shared.shape)} {shared.dtype}, routed is {tuple(routed.shape)} {routed.dtype}; "
            "expected the same shape and dtype"
        )
        raise ValueError(msg)


def maybe_fuse_routed_scale_and_shared_add(
    experts: ReferenceExperts, routed: torch.Tensor, shared: torch.Tensor | None, routed_scaling_factor: float
) -> torch.Tensor:
    """Finish a MoE layer in place and return the tensor that holds the result (which one: see `Rule`).

    `routed` and `shared`: (tokens, hidden size), equal in shape and dtype. A fused method's routed output lacks the
    factor unless top-k applied it; a plain method's routed output is final. Raises ValueError for tensors that differ
    in shape or dtype, a factor that is not finite, or a method that nobody knows.
    """
    _check(routed, shared, routed_scaling_factor)
    if not WITH_FLAG.fuses(experts.quant_method.key):
        return routed if shared is None else routed.add_(shared)
    scaled = experts.should_fuse_routed_scaling_factor_in_topk
    if shared is not None:
        return shared.add_(routed, alpha=1.0 if scaled else routed_scaling_factor)
    return routed if scaled else routed.mul_(routed_scaling_factor)
