"""The account of the routed scaling factor: its exponent in the output of a whole MoE layer must be 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch

from harness.checks.meter import Meter
from harness.checks.moe_layer import Experts, Parts, flag_of, forward_normal
from harness.checks.moe_routers import ROUTERS, route_of
from harness.checks.moe_step import quant_method
from reference.moe.fusion import (
    PLAIN,
    Generation,
    QuantMethod,
    ReferenceExperts,
    maybe_fuse_routed_scale_and_shared_add,
)
from reference.moe.routing import RoutingSpec, route
from reference.moe.scaling import PLACES, Place, applied_by, serves

# No power of it, nor a product with a power of 2, comes near another.
FACTOR: Final = 2.7
_TOKENS, _HIDDEN, _EXPERTS = 5, 8, 16
_SHARED: Final = 1000.0
# The shared output of 1000 leaves float32 an error of 2^-14 in the rest, which is at least 0.2: under a thousandth.
_EXPONENT_ERROR: Final = 1e-3
_ROUTER: Final = ROUTERS["biased_grouped_topk_impl"]


@dataclass(frozen=True, slots=True)
class ScaleCase:
    """One quantisation method on one platform that serves it."""

    platform: str
    method: str
    shared: bool

    @property
    def id(self) -> str:
        """The parameters as they stand in the case id."""
        return f"{self.platform}-{self.method}-{'shared' if self.shared else 'alone'}"


def scale_cases(platform: str, generation: Generation) -> list[ScaleCase]:
    """Every method that has kernels on the platform, with and without a shared expert."""
    methods = [method for method in (PLAIN, *generation.methods) if serves(platform, method)]
    return [ScaleCase(platform, method, shared) for method in methods for shared in (True, False)]


def _spec(*, in_topk: bool) -> RoutingSpec:
    return RoutingSpec(
        top_k=3,
        scoring="sigmoid",
        groups=4,
        top_groups=2,
        group_score="best_two",
        factor=FACTOR,
        factor_on_output=in_topk,
    )


@dataclass(frozen=True, slots=True)
class _Inputs:
    """What a layer gets, and `base`: its routed output with no factor at all."""

    hidden: torch.Tensor
    logits: torch.Tensor
    bias: torch.Tensor
    gains: torch.Tensor
    base: torch.Tensor


def _inputs(seed: int) -> _Inputs:
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.rand(_TOKENS, _HIDDEN, generator=generator) + 0.5
    logits, bias = torch.randn(_TOKENS, _EXPERTS, generator=generator), torch.rand(_EXPERTS, generator=generator)
    gains = torch.rand(_EXPERTS, generator=generator) + 0.5
    right = route(logits, _spec(in_topk=False), bias)
    base = (right.weights * gains.double()[right.ids]).sum(dim=-1, keepdim=True) * hidden.double()
    return _Inputs(hidden, logits, bias, gains, base)


def _experts(inputs: _Inputs, *, scale: bool) -> Callable[[torch.Tensor, Any], torch.Tensor]:
    """Experts that multiply by a gain each, weighted; `scale`: and by the factor, as the platform's kernels would."""

    def compute(hidden: torch.Tensor, answer: Any) -> torch.Tensor:
        weights, ids = answer
        gains = inputs.gains.to(hidden.device)[ids.long()]
        sums: torch.Tensor = (weights * gains).sum(dim=-1, keepdim=True)
        return hidden * sums * (FACTOR if scale else 1.0)

    return compute


def _sglang_layer(case: ScaleCase, inputs: _Inputs, device: str, root: Path) -> tuple[torch.Tensor, Place]:
    in_topk = flag_of(case.method)
    place = applied_by(case.platform, case.method, in_topk=in_topk)
    experts = Experts(
        _experts(inputs, scale=place == "experts"),
        quant_method=quant_method(case.method),
        should_fuse_routed_scaling_factor_in_topk=in_topk,
        moe_runner_config=Parts("the runner's configuration", inplace=True),
    )
    hidden = inputs.hidden.to(device)

    def topk(*_arguments: object, **_keywords: object) -> object:
        return route_of(root)(_ROUTER, inputs.logits.to(device), _spec(in_topk=in_topk), inputs.bias.to(device))

    def shared(*_arguments: object, **_keywords: object) -> torch.Tensor | None:
        return torch.full_like(hidden, _SHARED) if case.shared else None

    out = forward_normal(hidden.clone(), experts=experts, topk=topk, shared=shared, factor=FACTOR, in_topk=in_topk)
    return out.cpu(), place


def _reference_layer(case: ScaleCase, inputs: _Inputs) -> tuple[torch.Tensor, Place]:
    in_topk = case.method not in (PLAIN, "expert_pack")
    place = applied_by(case.platform, case.method, in_topk=in_topk)
    found = route(inputs.logits, _spec(in_topk=in_topk), inputs.bias)
    routed = _experts(inputs, scale=place == "experts")(inputs.hidden.double(), (found.weights, found.ids))
    routed = routed * FACTOR if place == "model" else routed
    shared = torch.full_like(routed, _SHARED) if case.shared else None
    experts = ReferenceExperts(QuantMethod(case.method), in_topk)
    return maybe_fuse_routed_scale_and_shared_add(experts, routed, shared, FACTOR), place


def check_scale(case: ScaleCase, root: Path | None, *, seed: int, device: str, meter: Meter) -> None:
    """Run a layer and find the exponent of the factor in its output; AssertionError when it is not 1 everywhere."""
    inputs = _inputs(seed)
    out, place = _reference_layer(case, inputs) if root is None else _sglang_layer(case, inputs, device, root)
    meter.compared(out.nbytes)
    routed = out.double() - (_SHARED if case.shared else 0.0)
    exponents = torch.log((routed / inputs.base).abs()) / math.log(FACTOR)
    wrong = (exponents - 1).abs() > _EXPONENT_ERROR
    if bool(wrong.any()) or bool((routed <= 0).any()):
        found = round(exponents.mean().item(), 3) + 0.0
        shared = "with a shared expert" if case.shared else "without a shared expert"
        msg = (
            f"routed scaling factor {FACTOR}, {case.method} on {case.platform}, {shared}: its exponent in the layer's "
            f"output is {found:g} ({_said(found)}); expected 1, applied by the {place} alone (of {', '.join(PLACES)})"
        )
        raise AssertionError(msg)


def _said(exponent: float) -> str:
    if abs(exponent - round(exponent)) > 10 * _EXPONENT_ERROR:
        return "not a power of it"
    times = {0: "nobody applied it", 1: "applied once, but not to every element", 2: "applied twice"}
    return times.get(round(exponent), f"applied {round(exponent)} times")
