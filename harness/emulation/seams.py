"""The seams: where something of ours takes the place of a function of the SUT, as soon as its module has run.

`load_jit`: SGLang compiles each JIT kernel through it. It lives in a submodule of `sglang/jit_kernel/utils` (0.5.16) or
`sglang/kernels/jit/utils` (later) that the package re-exports, so it is replaced in every module of those packages.

`hf_transformers_patches`: run by `sglang/__init__.py`, it edits transformers in place. Where transformers is a stand-in
there is nothing to edit, so it is told that it has run.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

JIT_PACKAGES: Final = ("sglang.jit_kernel.utils", "sglang.kernels.jit.utils")
TRANSFORMERS_PATCHES: Final = "sglang.srt.utils.hf_transformers_patches"


def replace_load_jit(loader: Callable[..., Any]) -> Callable[[ModuleType], None]:
    """Return the hook that puts `loader` in the place of `load_jit`."""

    def after_exec(module: ModuleType) -> None:
        if module.__name__.startswith(JIT_PACKAGES) and "load_jit" in vars(module):
            vars(module)["load_jit"] = loader

    return after_exec


def skip_transformers_patches(module: ModuleType) -> None:
    """Mark SGLang's edits of transformers as applied: the hook for a process where transformers is a stand-in."""
    if module.__name__ == TRANSFORMERS_PATCHES:
        vars(module)["_applied"] = True
