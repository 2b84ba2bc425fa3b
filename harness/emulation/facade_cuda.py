"""torch as it answers on NVIDIA CUDA; `show` is shared with ROCm, which PyTorch calls `cuda` too."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import torch

from harness.emulation.facade import Facade, HostRegistrations, answer, no_accelerators, put, refuser, streams


def show(device: Mapping[str, Any], properties: SimpleNamespace, registrations: HostRegistrations) -> None:
    """Make `torch.cuda` answer for one device with these properties."""
    total = int(device["total_memory"])
    put(
        torch.cuda,
        is_available=answer(value=True),
        device_count=answer(1),
        current_device=answer(0),
        set_device=answer(None),
        get_device_name=answer(device["name"]),
        get_device_capability=answer(tuple(device["capability"])),
        get_device_properties=answer(properties),
        mem_get_info=answer((total * 3 // 4, total)),
        memory_allocated=answer(0),
        memory_reserved=answer(0),
        empty_cache=answer(None),
        is_current_stream_capturing=answer(value=False),
        cudart=registrations.runtime,
        graph=refuser("torch.cuda.graph"),
        **streams(),
    )


def install(device: Mapping[str, Any], registrations: HostRegistrations) -> Facade:
    """Make torch answer as on CUDA."""
    no_accelerators()
    torch.version.cuda = device["version"]
    major, minor = device["capability"]
    properties = SimpleNamespace(
        name=device["name"],
        major=major,
        minor=minor,
        total_memory=device["total_memory"],
        multi_processor_count=device["multi_processor_count"],
        warp_size=device["warp_size"],
    )
    show(device, properties, registrations)
    return Facade()
