"""Doubles of the Mamba state transfers of `sgl_kernel_npu.kvcacheio`.

Read in `csrc/transfer_state_dim_exchange` of sgl-kernel-npu at commit f425bdf1.

Device state components are (layer, slot, …), host components (slot, layer, 1, …). Indices count slots, in any order.
No release up to 0.5.23 calls them.
"""

from __future__ import annotations

from typing import Any, Final

import torch

from harness.emulation import npu_device
from harness.emulation.doubles.operands import Call, refuse
from harness.emulation.doubles.rows import Addressing, Copy, Rows, Slots, move
from harness.emulation.doubles.signature import Arguments
from harness.emulation.memory import region_of
from harness.errors import BadCall, OutOfRegion

_INDEX_TYPES: Final = (torch.int64, torch.int32)


def all_layer_d2h(call: Call, arguments: Arguments) -> None:
    """`transfer_state_all_layer_direct_lf_pf`: every layer of every component, device to host."""
    devices, hosts = list(arguments["device_states"]), list(arguments["host_states"])
    if not devices or len(devices) != len(hosts):
        found = f"{len(devices)} device and {len(hosts)} host components"
        refuse(BadCall, call.name, found, "as many of both, at least one", "pass each component with its mirror")
    device_slots, host_slots = _slots(call, arguments, "device_indices", "host_indices")
    if not device_slots.size:
        return
    copies: list[Copy] = []
    for number, (device, host) in enumerate(zip(devices, hosts, strict=True)):
        what = f"component {number}"
        if device.dim() < 3 or device.shape[0] != devices[0].shape[0]:  # noqa: PLR2004 - (layer, slot, …)
            found = f"{what}: device state of shape {tuple(device.shape)}"
            refuse(BadCall, call.name, found, "(layers, slots, …) with the layers of component 0", "check the states")
        for layer in range(device.shape[0]):
            device_rows, host_rows, width = _mirror(
                call, device[layer], host, layer, device.shape[0], (device_slots, host_slots), what
            )
            copies.append(Copy(device_rows, host_rows, width))
    move(call.name, copies)


def per_layer_h2d(call: Call, arguments: Arguments) -> None:
    """`transfer_state_per_layer_direct_pf_lf`: one layer of one component, host to device."""
    host, device, layer = arguments["src"], arguments["dst"], arguments["layer_id"]
    host_slots, device_slots = _slots(call, arguments, "src_indices", "dst_indices")
    if not host_slots.size:
        return
    layers = host.shape[1] if host.dim() > 1 else 0
    if not 0 <= layer < layers:
        refuse(OutOfRegion, call.name, f"layer_id is {layer}", f"0..{layers}", "pass a layer of the host state")
    device_rows, host_rows, width = _mirror(call, device, host, layer, layers, (device_slots, host_slots), "state")
    move(call.name, [Copy(host_rows, device_rows, width)])


def _slots(call: Call, arguments: Arguments, first: str, second: str) -> tuple[Slots, Slots]:
    if getattr(arguments["flags"], "name", None) != "FAST2D":
        refuse(
            BadCall, call.name, f"flags is {arguments['flags']!r}", "TransferFlag.FAST2D", "import the vendor's enum"
        )
    found = [call.indices(arguments[name], name, dtypes=_INDEX_TYPES) for name in (first, second)]
    call.pair(*found)
    for name, slots in zip((first, second), found, strict=True):
        call.not_negative(slots, name)
    return found[0], found[1]


def _mirror(
    call: Call, device: Any, host: Any, layer: int, layers: int, slots: tuple[Slots, Slots], what: str
) -> tuple[Rows, Rows, int]:
    """Check one device layer (slot, …) against its host component; returns both rows and their width in bytes."""
    _check_shapes(call, device, host, layers, what)
    call.lies(device, f"{what}: the device state", "device")
    call.lies(host, f"{what}: the host state", "host")
    if npu_device.is_loaded() and not host.is_pinned():
        refuse(
            BadCall, call.name, f"{what}: the host state is pageable", "pinned memory", "allocate it with pin_memory"
        )
    item = device.element_size()
    width = host[0, 0].numel() * item
    return (
        _rows(call, device, slots[0], 0, f"{what}: device layer {layer}"),
        _rows(call, host, slots[1], layer * host.stride(1) * item, f"{what}: host layer {layer}"),
        width,
    )


def _check_shapes(call: Call, device: Any, host: Any, layers: int, what: str) -> None:
    if not device.numel() or not host.numel():
        refuse(BadCall, call.name, f"{what} is empty", "state to move", "pass the states of the pools")
    fits = host.dim() == device.dim() + 2 and host.shape[1] == layers and host.shape[2] == 1
    if not fits or host.shape[3:] != device.shape[1:] or host.dtype != device.dtype:
        found = f"{what}: device layer {tuple(device.shape)} {device.dtype}, host {tuple(host.shape)} {host.dtype}"
        refuse(BadCall, call.name, found, f"host (slots, {layers}, 1, …) of the same rows", "check shapes and dtypes")
    strides = sorted(zip(device.stride()[1:], device.shape[1:], strict=True))
    dense, expected = True, 1
    for stride, size in strides:
        dense = dense and (size == 1 or stride == expected)
        expected *= size
    if not dense or device.stride(0) != expected or not host.is_contiguous():
        found = f"{what}: strides {device.stride()} on the device, {host.stride()} on the host"
        refuse(BadCall, call.name, found, "slots that are dense on both sides", "pass the states as allocated")


def _rows(call: Call, tensor: torch.Tensor, slots: Slots, shift: int, what: str) -> Rows:
    if int(slots.max()) >= tensor.shape[0]:
        found = f"{what}: slot {int(slots.max())} of {tensor.shape[0]}"
        refuse(OutOfRegion, call.name, found, f"slots 0..{tensor.shape[0]}", "check the indices")
    region = region_of(tensor, what, None)
    stride = tensor.stride(0) * tensor.element_size()
    return Rows(what, region, region.start + shift, Addressing.strided(slots, stride))
