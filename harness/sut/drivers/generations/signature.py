"""What tells the generations of a constructor apart: the parameters that must be there, and the ones it may demand."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harness.sut.drivers.port import PoolRequest

# (host pool class, target device pool, draft device pools, request) -> host pool
BuildHost = Callable[[Any, Any, Sequence[Any], PoolRequest], Any]


@dataclass(frozen=True, slots=True)
class Generation:
    """One API: its first release, the parameters that mark it, those that we pass, and how to build a host pool."""

    name: str
    needs: frozenset[str]
    passes: frozenset[str]
    packs_drafts: bool
    build_host: BuildHost

    def knows(self, signature: inspect.Signature) -> bool:
        """Whether the marks are there and every parameter without a default is one that we pass.

        A parameter with a default that nobody knows yet is fine: a change under test may add one.
        """
        parameters = {n: p for n, p in signature.parameters.items() if n != "self"}
        demanded = {
            name
            for name, p in parameters.items()
            if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        }
        return self.needs <= set(parameters) and demanded <= self.passes


def common_arguments(request: PoolRequest) -> dict[str, Any]:
    """The arguments that every generation takes by these names: ratio sizing, pageable CPU memory."""
    geometry = request.geometry
    return {
        "host_to_device_ratio": geometry.host_ratio,
        "host_size": 0,
        "page_size": geometry.logical_page_size,
        "layout": request.layout,
        "pin_memory": request.pin_memory,
        "device": "cpu",
        "override_kv_cache_dim": packed_elements(request),
    }


def packed_elements(request: PoolRequest) -> int | None:
    """Elements of a packed latent row (DeepSeek-V3.2 in fp8: 656 bytes of one byte each), None for a plain row."""
    row_bytes = request.geometry.packed_row_bytes
    return None if row_bytes is None else row_bytes // request.geometry.itemsize


COMMON = frozenset({"host_to_device_ratio", "host_size", "page_size", "layout", "pin_memory", "device"})
