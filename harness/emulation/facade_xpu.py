"""torch as it answers on Intel XPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import torch

from harness.emulation.facade import Facade, HostRegistrations, answer, no_accelerators, put, streams


def install(device: Mapping[str, Any], _registrations: HostRegistrations) -> Facade:
    """Make torch answer as on XPU."""
    no_accelerators()
    total = int(device["total_memory"])
    properties = SimpleNamespace(
        name=device["name"],
        total_memory=total,
        max_compute_units=device["multi_processor_count"],
        gpu_subslice_count=device["multi_processor_count"] // 8,
        has_fp64=True,
    )
    put(
        torch.xpu,
        is_available=answer(value=True),
        device_count=answer(1),
        current_device=answer(0),
        set_device=answer(None),
        get_device_name=answer(device["name"]),
        get_device_capability=answer({"has_fp64": True}),
        get_device_properties=answer(properties),
        mem_get_info=answer((total * 3 // 4, total)),
        memory_allocated=answer(0),
        empty_cache=answer(None),
        **streams(),
    )
    return Facade()
