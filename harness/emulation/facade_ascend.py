"""torch as it answers on Huawei Ascend once torch_npu is imported: a device module `torch.npu`.

With the compiled backend (npu_device) `npu` is a real PyTorch device whose tensors live in CPU memory; without it pools
are built on the CPU, and the report says so.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

import torch

from harness.emulation.facade import HostRegistrations, answer, no_accelerators, put, streams


def device_module(device: Mapping[str, Any]) -> ModuleType:
    """Build the module `torch.npu` with what a device module answers."""
    total = int(device["total_memory"])
    npu = ModuleType("torch.npu", "poolparity's stand-in for the device module of torch_npu")
    put(
        npu,
        is_available=answer(value=True),
        is_initialized=answer(value=True),
        device_count=answer(1),
        current_device=answer(0),
        set_device=answer(None),
        get_device_name=answer(device["name"]),
        get_device_properties=answer(
            SimpleNamespace(name=device["name"], total_memory=total, cube_core_num=device["multi_processor_count"])
        ),
        mem_get_info=answer((total * 3 // 4, total)),
        memory_allocated=answer(0),
        memory_reserved=answer(0),
        empty_cache=answer(None),
        is_current_stream_capturing=answer(value=False),
        set_compile_mode=answer(None),
        _is_in_bad_fork=answer(value=False),
        get_amp_supported_dtype=answer([torch.bfloat16, torch.float16]),
        **streams(),
    )
    return npu


def install(device: Mapping[str, Any], registrations: HostRegistrations) -> str:
    """Make torch answer as on Ascend; returns the torch device that tensors are made on: "npu", or "cpu"."""
    no_accelerators()
    npu = device_module(device)
    name = "cpu"
    sys.modules["torch.npu"] = npu
    torch.npu = npu  # type: ignore[attr-defined]  # what torch_npu adds
    return name
