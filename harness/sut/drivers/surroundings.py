"""What SGLang's pools read from their process outside a server, set up once, without touching their logic.

Sources: FACTS.md section 1.6 (parallel widths) and 1.3 (the host memory budget).
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

# One rank that is all there is: no decode context parallelism.
_WIDTHS = {"attn_dcp_size": 1, "attn_dcp_rank": 0, "dcp_enabled": False}
# What the pools may believe to be free: more than any case asks for, whatever this machine has.
_FREE_BYTES = 1 << 40


def set_parallel_widths() -> None:
    """State the parallel widths that pools derive from a server's arguments."""
    context: Any = importlib.import_module("sglang.srt.runtime_context").get_parallel()
    if hasattr(context, "override_permanently"):
        context.override_permanently(**_WIDTHS)
    else:
        context.override(**_WIDTHS).__enter__()


class _Psutil(ModuleType):
    """psutil as one module of the SUT sees it: the machine has a fixed amount of free memory."""

    def __init__(self, real: ModuleType) -> None:
        super().__init__("psutil")
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    @staticmethod
    def virtual_memory() -> SimpleNamespace:
        return SimpleNamespace(available=_FREE_BYTES, total=_FREE_BYTES, free=_FREE_BYTES, percent=0.0)


@contextlib.contextmanager
def host_memory_budget() -> Iterator[None]:
    """Make the budget check of host pools independent of this machine's free memory (0.5.21 and later have a scope)."""
    base: Any = importlib.import_module("sglang.srt.mem_cache.pool_host.base")
    if hasattr(base, "host_memory_budget_scope"):
        with base.host_memory_budget_scope(_FREE_BYTES):
            yield
        return
    if not isinstance(base.psutil, _Psutil):
        base.psutil = _Psutil(base.psutil)
    yield


@contextlib.contextmanager
def kernels_not_compiled(pools: ModuleType) -> Iterator[None]:
    """Have SGLang find that its JIT kernels did not compile, so that it takes the ahead-of-time branch."""
    names = [n for n in ("can_use_hicache_jit_kernel", "can_use_write_back_jit_kernel") if hasattr(pools, n)]
    before = {name: getattr(pools, name) for name in names}
    for name in names:
        setattr(pools, name, lambda **_: False)
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(pools, name, function)
