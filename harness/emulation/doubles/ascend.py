"""Stand-in for `sgl_kernel_npu.kvcacheio`."""

from __future__ import annotations

from types import ModuleType

from harness.emulation.doubles.calls import CallLog
from harness.emulation.memory import AddressSpace


def ascend_kvcacheio_module(memory: AddressSpace, calls: CallLog, build: str) -> ModuleType:
    """The module of one vendor build generation: `K0` (no scale keywords), `K1`, `K2`, `K3` (FACTS.md section 4.3)."""
    raise NotImplementedError  # being written
