"""The fusion step of a SUT behind one small interface: SGLang's function with its own classes, or the reference's."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any, Final, Protocol

import torch

from harness.checks.moe_generation import STEP_MODULE, STEP_NAME, source
from harness.checks.moe_imports import ImportTrouble, explained
from harness.errors import NoDriver
from reference.moe.fusion import (
    FUSED_METHODS,
    PLAIN,
    QuantMethod,
    ReferenceExperts,
    maybe_fuse_routed_scale_and_shared_add,
)

# A method that returns final routed outputs. It shares its base class with the fused ExpertPack.
_PLAIN_CLASS: Final = ("sglang.srt.layers.quantization.unquant", "UnquantizedFusedMoEMethod")


class Step(Protocol):
    """The last step of a MoE layer."""

    def __call__(
        self, method: str, routed: torch.Tensor, shared: torch.Tensor | None, factor: float, *, already_scaled: bool
    ) -> object:
        """Run the step for a quantisation method; return whatever the SUT returns."""


def reference_step(
    method: str, routed: torch.Tensor, shared: torch.Tensor | None, factor: float, *, already_scaled: bool
) -> object:
    """Run the reference's step."""
    experts = ReferenceExperts(QuantMethod(method), already_scaled)
    return maybe_fuse_routed_scale_and_shared_add(experts, routed, shared, factor)


@cache
def _broken(module: str) -> tuple[Exception, TracebackType | None] | None:
    """Import once; a failure is remembered too, because a broken import is slow and would be tried for every case."""
    try:
        importlib.import_module(module)
    except ImportTrouble as error:
        return explained(error), error.__traceback__
    return None


def _load(module: str, name: str) -> Any:
    broken = _broken(module)
    if broken is not None:
        error, trace = broken
        raise error.with_traceback(trace)
    return getattr(sys.modules[module], name)


def _step_function() -> Callable[..., object]:
    step: Callable[..., object] = _load(STEP_MODULE, STEP_NAME)
    return step


def call_once() -> list[str]:
    """Call SGLang's step for a method of no known class, and return the fused classes that it has imported by then.

    The step imports its fused methods when it is called, and on every platform: this is what breaks first.
    """
    experts = SimpleNamespace(quant_method=object(), should_fuse_routed_scaling_factor_in_topk=False)
    _step_function()(experts, torch.zeros(1, 1), None, 1.0)
    methods = FUSED_METHODS.values()
    return [m.class_name for m in methods if hasattr(sys.modules.get(m.module), m.class_name)]


@cache
def _broken_call() -> tuple[Exception, TracebackType | None] | None:
    try:
        call_once()
    except ImportTrouble as error:
        return explained(error), error.__traceback__
    return None


@cache
def quant_method(method: str) -> object:
    """Make an instance of the SUT's class without its constructor: the step looks at the type alone."""
    module, name = _PLAIN_CLASS if method == PLAIN else (FUSED_METHODS[method].module, FUSED_METHODS[method].class_name)
    return object.__new__(_load(module, name))


def sglang_step(
    method: str, routed: torch.Tensor, shared: torch.Tensor | None, factor: float, *, already_scaled: bool
) -> object:
    """Run SGLang's step. What it imports is tried first, once, so that a broken import shows its way from the step."""
    broken = _broken_call()
    if broken is not None:
        error, trace = broken
        raise error.with_traceback(trace)
    experts = SimpleNamespace(
        quant_method=quant_method(method), should_fuse_routed_scaling_factor_in_topk=already_scaled
    )
    return _step_function()(experts, routed, shared, factor)


def step_of(root: Path | None) -> Step:
    """Return the step of the SUT at `root` (None: the reference); NoDriver when its source has no such function."""
    if root is None:
        return reference_step
    if f"\ndef {STEP_NAME}(" not in source(root, STEP_MODULE):
        msg = (
            f"no driver for this fusion step: {STEP_MODULE} defines no function {STEP_NAME}; "
            "expected it there as in 0.5.16 to 0.5.23; teach harness/checks/moe_step.py where it is now"
        )
        raise NoDriver(msg)
    return sglang_step
