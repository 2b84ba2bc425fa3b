"""The routing cases: every function with every scoring that it takes x renormalised or not x who scales x shared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

import torch

from harness.checks.moe_routers import ROUTERS, Router
from reference.dtypes import torch_dtype
from reference.moe.routing import RoutingSpec

FACTOR: Final = 2.5
TOKENS: Final = 33
# Experts, routed top-k, groups, groups to choose from: a small one, and those of DeepSeek-V3 and Kimi-K2.
SIZES: Final = {"small": (16, 3, 4, 2), "v3": (256, 8, 8, 4), "k2": (384, 8, 1, 1)}
DTYPES: Final = ("fp32", "bf16")


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingCase:
    """One function asked for one way to route."""

    platform: str
    router: Router
    size: str
    scoring: str
    renormalize: bool
    factor: str
    shared: int
    biased: bool
    dtype: str

    @property
    def id(self) -> str:
        """The parameters as they stand in the case id."""
        parts = [self.platform, self.router.name, self.size, self.scoring]
        parts += ["renorm"] if self.renormalize else []
        parts += [f"factor_{self.factor}"] if self.factor else []
        parts += ["shared"] if self.shared else []
        parts += ["biased"] if self.biased else []
        return "-".join([*parts, self.dtype])

    @property
    def spec(self) -> RoutingSpec:
        """What the router must do."""
        _, top_k, groups, top_groups = SIZES[self.size]
        grouped = bool(self.router.group_score)
        return RoutingSpec(
            top_k=top_k,
            scoring=self.scoring,
            renormalize=self.renormalize,
            groups=groups if grouped else 1,
            top_groups=top_groups if grouped else 1,
            group_score="best_two" if self.router.group_score == "best_two" else "max",
            shared=self.shared,
            factor=FACTOR if self.factor else None,
            factor_on_output=self.factor == "on_output",
        )

    def inputs(self, seed: int) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Logits (tokens, experts) in the case's dtype, and a float32 bias (experts,) where the case has one."""
        generator = torch.Generator().manual_seed(seed)
        experts = SIZES[self.size][0]
        logits = (torch.randn(TOKENS, experts, generator=generator) * 2).to(torch_dtype(self.dtype))
        # As large as the scores' own spread, so that it decides often; a weight that takes it in is far off.
        bias = torch.rand(experts, generator=generator) if self.biased else None
        return logits, bias


def _factors(router: Router) -> tuple[str, ...]:
    return ("on_output", "later") if router.factor else ("",)


def _of(platform: str, router: Router) -> Iterator[RoutingCase]:
    shared = (0, 1) if router.shared else (0,)
    biased: tuple[bool, ...] = (router.bias,)
    if router.name == "fused_topk_torch_native":
        biased = (False, True)
    axes = product(SIZES, router.scorings, (True, False), _factors(router), shared, biased, DTYPES)
    for size, scoring, renormalize, factor, fused, bias, dtype in axes:
        # The large sizes are for the groups and the ids; who scales and renormalises does not depend on them, nor on
        # the scoring or the dtype.
        if size != "small" and (not renormalize or dtype != "fp32" or factor == "later"):
            continue
        if not renormalize and factor and (dtype != "fp32" or scoring != router.scorings[0]):
            continue
        yield RoutingCase(
            platform=platform,
            router=router,
            size=size,
            scoring=scoring,
            renormalize=renormalize,
            factor=factor,
            shared=fused,
            biased=bias,
            dtype=dtype,
        )


def routing_cases(platform: str) -> list[RoutingCase]:
    """Every case on a platform."""
    return [case for router in ROUTERS.values() for case in _of(platform, router)]
