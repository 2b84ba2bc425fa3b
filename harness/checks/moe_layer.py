"""SGLang's MoE layer with everything around its own accounting replaced: router, experts and shared expert are ours.

`DeepseekV2MoE.forward_normal` runs unchanged on an object that has the parts it asks for. A part that it asks for and
that is not here is an error of this driver, never a guess.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

import torch

from harness.checks.moe_step import quant_method
from harness.errors import NoDriver

MODEL: Final = "sglang.srt.models.deepseek_v2"
_LAYER: Final = "sglang.srt.layers.moe.fused_moe_triton.layer"
_FLAG: Final = "_fuses_routed_scaling_factor_in_topk"


class MissingPart(NoDriver, AttributeError):  # noqa: N818 - reads as the sentence it stands for
    """SGLang's layer asks for a part that this driver does not give it."""


class Parts:
    """An object with some attributes; `hasattr` is honest, and using an unknown one says whose fault that is."""

    def __init__(self, what: str, **parts: Any) -> None:
        self.__dict__.update(parts)
        self._what = what

    def __getattr__(self, name: str) -> Any:
        msg = f"{self._what} is asked for {name!r}, which harness/checks/moe_layer.py does not give it; add it there"
        raise MissingPart(msg)


class Experts(Parts):
    """An experts layer that computes with a function of (hidden states, top-k output)."""

    def __init__(self, compute: Callable[[torch.Tensor, Any], torch.Tensor], **parts: Any) -> None:
        super().__init__("the experts layer", **parts)
        self._compute = compute

    def __call__(self, hidden_states: torch.Tensor, topk_output: Any, **_keywords: object) -> torch.Tensor:
        """Compute as SGLang's FusedMoE is called."""
        return self._compute(hidden_states, topk_output)


class Gate(Parts):
    """The router's projection: its logits are not used, since the top-k that follows brings its own."""

    def __call__(self, *_arguments: object, **_keywords: object) -> None:
        """Compute nothing."""


def flag_of(method: str) -> bool:
    """Whether SGLang has top-k apply the factor for a method; before 0.5.19 no method here asks for that."""
    function = getattr(importlib.import_module(_LAYER), _FLAG, None)
    if function is None:
        return False
    arguments = (quant_method(method), None)[: function.__code__.co_argcount]
    return bool(function(*arguments))


def _config() -> SimpleNamespace:
    """The published settings, as far as the layer reads them: no expert load balancing."""
    return SimpleNamespace(enable_eplb=False, moe=SimpleNamespace(enable_eplb=False))


def _settings(module: Any) -> AbstractContextManager[Any]:
    replaced: dict[str, Any] = {
        name: _config for name in ("get_exec", "get_server_args", "get_global_server_args") if hasattr(module, name)
    }
    if getattr(module, "_hip_moe", None) is not None:  # the router on ROCm: ours needs no hidden states
        replaced["_hip_moe"] = Parts("the ROCm router", forward_gate=lambda *_a, **_k: (None, None))
    if hasattr(module, "post_experts_all_reduce"):  # one rank has nothing to sum with
        replaced["post_experts_all_reduce"] = lambda hidden_states: hidden_states
    if hasattr(module, "ExpertLocationDispatchInfo"):
        replaced["ExpertLocationDispatchInfo"] = SimpleNamespace(init_new=lambda **_k: None)
    context: AbstractContextManager[Any] = patch.multiple(module, **replaced)
    return context


def forward_normal(
    hidden: torch.Tensor,
    *,
    experts: Experts,
    topk: Callable[..., Any],
    shared: Callable[..., torch.Tensor | None],
    factor: float,
    in_topk: bool,
) -> torch.Tensor:
    """Run SGLang's `DeepseekV2MoE.forward_normal` on one rank; returns its output (tokens, hidden size)."""
    module: Any = importlib.import_module(MODEL)
    layer = Parts(
        "the MoE layer",
        experts=experts,
        topk=topk,
        gate=Gate("the router", e_score_correction_bias_vl=None),
        shared_experts=SimpleNamespace(gate_up_proj=SimpleNamespace()),
        _forward_shared_experts=shared,
        _maybe_quant_moe_input_once=lambda *_a: None,
        _fuse_shared_experts_inside_sbo=False,
        _shared_expert_tp1=False,
        routed_scaling_factor=factor,
        routed_scaling_factor_fused_in_topk=in_topk,
        layer_id=0,
        tp_size=1,
        reduce_results=False,
        is_nextn=False,
        is_hash=False,
        is_deepseek_v4=False,
    )
    with _settings(module):
        output: torch.Tensor = module.DeepseekV2MoE.forward_normal(layer, hidden)
    return output
