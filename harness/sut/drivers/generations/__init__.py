"""One module for each generation of the MLA host pool's constructor, chosen by its signature (FACTS.md section 1.1)."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType
from typing import TYPE_CHECKING, Any

from harness.errors import NoDriver
from harness.sut.drivers.generations import g0516, g0517, g0518, g0520, g0523
from harness.sut.drivers.generations.signature import Generation
from harness.sut.drivers.sglang_driver import SGLangDriver

if TYPE_CHECKING:
    from harness.emulation import Emulation

# Newest first: a later generation has the earlier one's parameters and more.
GENERATIONS: tuple[Generation, ...] = (
    g0523.GENERATION,
    g0520.GENERATION,
    g0518.GENERATION,
    g0517.GENERATION,
    g0516.GENERATION,
)

_MODULE = "sglang.srt.mem_cache.pool_host.mla"
_CLASS = "MLATokenToKVPoolHost"


def generation_of(host_class: type) -> Generation:
    """Return the generation that knows this host pool class; raises NoDriver with the signature found."""
    signature = inspect.signature(vars(host_class).get("__init__", host_class))
    for generation in GENERATIONS:
        if generation.knows(signature):
            return generation
    known = "; ".join(f"{g.name}: {', '.join(sorted(g.needs))}" for g in GENERATIONS)
    msg = (
        f"no driver for this pool API: {_CLASS}.__init__{signature}; expected one of the known ones ({known}); "
        "add a module to harness/sut/drivers/generations"
    )
    raise NoDriver(msg)


def choose(platform: str, emulation: Emulation | None) -> SGLangDriver:
    """Import the SUT's pools and return the driver that speaks their API."""
    pools: ModuleType = importlib.import_module(_MODULE)
    host_class: Any = getattr(pools, _CLASS, None)
    if host_class is None:
        msg = f"no driver for this pool API: {_MODULE} has no {_CLASS}; add a module to harness/sut/drivers/generations"
        raise NoDriver(msg)
    return SGLangDriver(generation_of(host_class), pools, platform, emulation)
