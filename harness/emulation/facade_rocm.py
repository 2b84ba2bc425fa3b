"""torch as it answers on AMD ROCm: `torch.cuda` is there, and `torch.version.hip` in place of `torch.version.cuda`."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import torch

from harness.emulation.facade import Facade, HostRegistrations, no_accelerators
from harness.emulation.facade_cuda import show


def install(device: Mapping[str, Any], registrations: HostRegistrations) -> Facade:
    """Make torch answer as on ROCm."""
    no_accelerators()
    torch.version.hip = device["version"]
    major, minor = device["capability"]
    properties = SimpleNamespace(
        name=device["name"],
        gcnArchName=device["gcn_arch_name"],
        major=major,
        minor=minor,
        total_memory=device["total_memory"],
        multi_processor_count=device["multi_processor_count"],
        warp_size=device["warp_size"],
    )
    show(device, properties, registrations)
    return Facade()
