"""SGLang's top-k functions that are plain PyTorch, each with what it can be asked; and the reference's as one of them.

All return (weights, ids) of shape (tokens, columns). They choose for themselves whether to be compiled; here they run
eagerly, which is the same code.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch

from harness.errors import NoDriver
from reference.moe.routing import RoutingSpec, route

MODULE: Final = "sglang.srt.layers.moe.topk"
Answer = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True, slots=True)
class Router:
    """One function and what it takes. `group_score` is "" where it knows no groups; `bias` where it needs one."""

    name: str
    scorings: tuple[str, ...]
    bias: bool = False
    group_score: str = ""
    shared: bool = False
    factor: bool = False


ROUTERS: Final = {
    router.name: router
    for router in (
        Router("fused_topk_torch_native", ("softmax", "sigmoid", "sqrtsoftplus")),
        Router("grouped_topk_gpu", ("softmax", "sigmoid"), group_score="max", shared=True, factor=True),
        Router("biased_topk_impl", ("sigmoid", "sqrtsoftplus"), bias=True, shared=True, factor=True),
        Router("kimi_k2_biased_topk_impl", ("sigmoid",), bias=True, factor=True),
        Router("biased_grouped_topk_impl", ("sigmoid",), bias=True, group_score="best_two", shared=True, factor=True),
    )
}


def _keywords(router: Router, spec: RoutingSpec, bias: torch.Tensor | None) -> dict[str, Any]:
    keywords: dict[str, Any] = {"topk": spec.top_k + (1 if spec.shared else 0), "renormalize": spec.renormalize}
    if bias is not None:
        keywords["correction_bias"] = bias
    if len(router.scorings) > 1:
        keywords["scoring_func"] = spec.scoring
    if router.group_score:
        keywords |= {"num_expert_group": spec.groups, "topk_group": spec.top_groups}
    if router.shared:
        keywords["num_fused_shared_experts"] = spec.shared
    if router.factor:
        keywords["routed_scaling_factor"] = spec.factor
        keywords["apply_routed_scaling_factor_on_output"] = spec.factor_on_output
    return keywords


def _eager() -> AbstractContextManager[Any]:
    """Run compiled functions as they are written: a case asks what they mean."""
    if "torch._dynamo" not in sys.modules:
        return nullcontext()
    stance: AbstractContextManager[Any] = torch.compiler.set_stance("force_eager")
    return stance


def sglang_route(router: Router, logits: torch.Tensor, spec: RoutingSpec, bias: torch.Tensor | None) -> Answer:
    """Call SGLang's function; NoDriver when the module has none of that name."""
    module = importlib.import_module(MODULE)
    function: Callable[..., Answer] | None = getattr(module, router.name, None)
    if function is None:
        msg = (
            f"no driver for this router: {MODULE} has no {router.name}; expected it as in 0.5.16 to 0.5.23; "
            "teach harness/checks/moe_routers.py what took its place"
        )
        raise NoDriver(msg)
    hidden = torch.zeros(logits.shape[0], 1, dtype=logits.dtype, device=logits.device)
    with _eager():
        return function(hidden, logits, **_keywords(router, spec, bias))


def reference_route(router: Router, logits: torch.Tensor, spec: RoutingSpec, bias: torch.Tensor | None) -> Answer:
    """Route with the reference in the logits' own precision (at least float32), in SGLang's form of an answer."""
    del router
    found = route(logits, spec, bias, dtype=torch.float32)
    if not spec.shared:
        return found.weights, found.ids.int()
    tokens, experts = logits.shape
    weight = torch.full((tokens, 1), found.shared_weight, dtype=found.weights.dtype)
    return torch.cat([found.weights, weight], 1), torch.cat([found.ids, torch.full((tokens, 1), experts)], 1).int()


Route = Callable[[Router, torch.Tensor, RoutingSpec, torch.Tensor | None], Answer]
ROUTES: Final[Mapping[bool, Route]] = {True: reference_route, False: sglang_route}


def route_of(root: Path | None) -> Route:
    """Return how the SUT at `root` routes (None: the reference)."""
    return ROUTES[root is None]
