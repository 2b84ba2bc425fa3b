"""torch as it answers on Huawei Ascend once torch_npu is imported: a device module `torch.npu`.

With the compiled backend (npu_device) `npu` is a real PyTorch device whose tensors live in CPU memory; without it pools
are built on the CPU, and the report says so.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final

import torch

from harness.emulation import npu_device
from harness.emulation.facade import Facade, HostRegistrations, answer, no_accelerators, put, refuser, streams

_NPU_ARCH_ATTRIBUTE: Final = 601
"""The attribute of `acl.rt.get_device_info` that SGLang's hardware_backend/npu/utils.py asks for."""


def device_answers(device: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the module `torch.npu` answers."""
    total = int(device["total_memory"])
    properties = SimpleNamespace(name=device["name"], total_memory=total, cube_core_num=device["multi_processor_count"])
    return dict(
        is_available=answer(value=True),
        is_initialized=answer(value=True),
        device_count=answer(1),
        current_device=answer(0),
        set_device=answer(None),
        get_device_name=answer(device["name"]),
        get_device_properties=answer(properties),
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


def acl_answers(device: Mapping[str, Any]) -> dict[str, object]:
    """Return the names of `acl.rt` that have an answer: SGLang asks for the NPU architecture at import (0.5.20 on)."""

    def get_device_info(index: int, attribute: int) -> tuple[int, int]:
        if attribute != _NPU_ARCH_ATTRIBUTE:
            refuser(f"acl.rt.get_device_info({index}, {attribute})")()
        return int(device["npu_arch"]), 0

    return {"get_device_info": get_device_info}


def install(device: Mapping[str, Any], _registrations: HostRegistrations) -> Facade:
    """Make torch answer as on Ascend, with the device `npu` where its backend can be built."""
    no_accelerators()
    built = npu_device.build_or_reason()
    if isinstance(built, Path):
        npu_device.load(built)
    npu = getattr(torch, "npu", None) or ModuleType("torch.npu", "poolparity's stand-in for torch_npu's device module")
    put(npu, **device_answers(device))
    sys.modules["torch.npu"] = npu
    torch.npu = npu  # type: ignore[attr-defined]  # what torch_npu adds
    answers = {"acl.rt": acl_answers(device)}
    if isinstance(built, Path):
        return Facade("npu", answers)
    return Facade("cpu", answers, f"pools are built on the CPU, there is no npu device: {built}")
