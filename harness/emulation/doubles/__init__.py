"""Doubles: CPU stand-ins for the vendors' transfer kernels, on raw pointers, with bounds and preconditions checked.

Each takes the same pointers as the real kernel, resolves them in an `AddressSpace`, refuses what the real kernel
refuses or what would silently corrupt memory (`harness.errors.KernelRefused`), and writes nothing when it refuses.
The names of the doubles that ran are appended to a `CallLog`: `aot.transfer_kv_direct`, `jit.launch_all_mla`, …
"""

from __future__ import annotations

from harness.emulation.doubles.ascend import ascend_kvcacheio_module
from harness.emulation.doubles.calls import CallLog
from harness.emulation.doubles.jit import jit_loader
from harness.emulation.doubles.kvcacheio import kvcacheio_functions

__all__ = ["CallLog", "ascend_kvcacheio_module", "jit_loader", "kvcacheio_functions"]
