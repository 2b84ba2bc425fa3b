"""Doubles of `sgl_kernel.kvcacheio`, as the CUDA, ROCm and XPU builds ship it.

Signatures: the wrappers in the wheels sgl-kernel 0.3.21 and sglang-kernel 0.4.5 to 0.4.10, and sgl-kernel-xpu at commit
1b25467d. Meaning and checks: `csrc/kvcacheio/transfer.cu` of sglang (commits 1243cf3d and 01068614) and
`src/sycl/KVCacheIO.cpp` of sgl-kernel-xpu (1ec6029e). Indices count tokens, in any order; sizes are bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from harness.emulation.doubles.calls import CallLog
from harness.emulation.doubles.kvcacheio_direct import DIRECT
from harness.emulation.doubles.kvcacheio_kernel import KERNELS, LaunchLimits, transfer
from harness.emulation.doubles.operands import Call
from harness.emulation.doubles.signature import Arguments, parameters, vendor_function
from harness.emulation.memory import AddressSpace
from harness.errors import UsageError

MODULE: Final = "sgl_kernel.kvcacheio"

LIMITS: Final = {
    "cuda": LaunchLimits(block_quota=2, group_name="num_warps_per_block", groups=32, lanes=32),
    "rocm": LaunchLimits(block_quota=2, group_name="num_warps_per_block", groups=16, lanes=64),
    "xpu": LaunchLimits(block_quota=16, group_name="sgs_per_wg", groups=32, lanes=16, automatic_quota=True),
}


def kvcacheio_functions(platform: str, memory: AddressSpace, calls: CallLog) -> dict[str, Callable[..., Any]]:
    """Doubles by public name: the 13 transfer functions of a platform's build, and `get_device_accessible_ptr`.

    XPU's build has no `get_device_accessible_ptr`. Raises UsageError for a platform without these kernels.
    """
    if platform not in LIMITS:
        msg = f"{MODULE} has no transfer kernels on {platform!r}; expected one of {', '.join(LIMITS)}"
        raise UsageError(msg)
    limits = LIMITS[platform]
    functions: dict[str, Callable[..., Any]] = {}

    def add(name: str, required: str, body: Callable[[Call, Arguments], Any], **defaults: Any) -> None:
        def run(arguments: Arguments) -> Any:
            calls.append(f"aot.{name}")
            return body(Call(f"aot.{name}", memory), arguments)

        functions[name] = vendor_function(MODULE, name, parameters(required, **defaults), run)

    for name, kernel in KERNELS.items():
        add(name, kernel.parameters, transfer(kernel, limits), **limits.defaults)
    for name, (required, body) in DIRECT.items():
        add(name, required, body)
    if platform != "xpu":
        add("get_device_accessible_ptr", "tensor device_index", _device_accessible_ptr)
    return functions


def _device_accessible_ptr(call: Call, arguments: Arguments) -> int:
    """Return the address by which the device reads a tensor: the host's own, as under CUDA's unified addressing."""
    tensor, device_index = call.tensor(arguments["tensor"], "tensor"), arguments["device_index"]
    if device_index < 0:
        msg = f"{call.name}: device_index is {device_index}; expected 0 or more; pass torch.cuda.current_device()"
        raise ValueError(msg)
    return tensor.data_ptr()
