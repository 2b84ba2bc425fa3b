"""The seam of the JIT kernels: SGLang compiles each through `load_jit`; the doubles' loader takes its place.

The function lives in `sglang/jit_kernel/utils` (0.5.16) or `sglang/kernels/jit/utils` (later), in a submodule of its own
that the package re-exports, so it is replaced in every module of those packages as soon as that module has run.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

SEAMS: Final = ("sglang.jit_kernel.utils", "sglang.kernels.jit.utils")


def replace_load_jit(loader: Callable[..., Any]) -> Callable[[ModuleType], None]:
    """Return the hook that puts `loader` in the place of `load_jit`."""

    def after_exec(module: ModuleType) -> None:
        if module.__name__.startswith(SEAMS) and "load_jit" in vars(module):
            vars(module)["load_jit"] = loader

    return after_exec
