"""Stand-in for `sgl_kernel_npu.kvcacheio`: whole pages between the device's layers and the host's pages.

Meaning and checks: `csrc/transfer_kv_dim_exchange` of sgl-kernel-npu at commit f425bdf1 (2026-08-21). The device holds
(layer, page, page_size, head, dim), the host (page, layer, page_size, head, dim). For each page the kernel makes one
pitched copy over all layers, with a pitch that it computes from the shapes, so it silently moves the wrong bytes where
the operands are not laid out as it assumes; the double refuses those.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

import torch

from harness.emulation.doubles.ascend_state import all_layer_d2h, per_layer_h2d
from harness.emulation.doubles.calls import CallLog
from harness.emulation.doubles.operands import Call, refuse
from harness.emulation.doubles.rows import Addressing, Copy, Rows, Slots, move
from harness.emulation.doubles.signature import Arguments, parameters, vendor_function
from harness.emulation.memory import AddressSpace, region_of
from harness.errors import BadCall, EmulationGap, OutOfRegion, UsageError

MODULE: Final = "sgl_kernel_npu.kvcacheio"


class TransferDirection(enum.Enum):
    """Which way a call copies."""

    H2D = 1
    D2H = 2


class TransferFlag(enum.Enum):
    """How a call copies: the vendor knows one way."""

    FAST2D = 2


_INDEX_TYPES: Final = (torch.int64, torch.int32)
_AXES: Final = 5
_OPERANDS: Final = "device_indices host_indices device_k host_k device_v host_v"
_INDEXER: Final = {"device_index_k": None, "host_index_k": None}
_SCALE: Final = {"device_index_k_scale": None, "host_index_k_scale": None}
_TAIL: Final = {"page_size": 128, "direction": TransferDirection.H2D, "flags": TransferFlag.FAST2D}
_SLICES: Final = {"layer_start": None, "layer_num": None, "index_k_layer_start": None, "index_k_layer_num": None}

BUILDS: Final[dict[str, dict[str, Any]]] = {
    "K0": {**_INDEXER, **_TAIL},
    "K1": {**_INDEXER, **_SCALE, **_TAIL},
    "K2": {**_INDEXER, **_SCALE, **_TAIL, **_SLICES},
    "K3": {**_INDEXER, **_SCALE, **_SLICES, **_TAIL},
}
"""Build generation -> its optional parameters in order (FACTS.md section 4.3; the order decides positional calls)."""

_STATE: Final = {
    "transfer_state_per_layer_direct_pf_lf": ("src dst src_indices dst_indices layer_id", per_layer_h2d),
    "transfer_state_all_layer_direct_lf_pf": (
        "device_states host_states device_indices host_indices",
        all_layer_d2h,
    ),
}
"""Mamba state transfers: public name -> (required parameters, body)."""


def ascend_kvcacheio_module(memory: AddressSpace, calls: CallLog, build: str) -> ModuleType:
    """Return the module of one vendor build generation, `K0` to `K3`; raises UsageError for another.

    It has `TransferDirection`, `TransferFlag`, `transfer_kv_dim_exchange` and the two Mamba state transfers.
    """
    if build not in BUILDS:
        msg = f"{MODULE}: build {build!r} is not known; expected one of {', '.join(BUILDS)}"
        raise UsageError(msg)
    module = ModuleType(MODULE, f"poolparity's double of {MODULE}, build {build}")
    vars(module).update({"TransferDirection": TransferDirection, "TransferFlag": TransferFlag})

    def add(name: str, params: list[inspect.Parameter], body: Callable[[Call, Arguments], None]) -> None:
        def run(arguments: Arguments) -> None:
            calls.append(f"ascend.{name}")
            body(Call(f"ascend.{name}", memory), arguments)

        setattr(module, name, vendor_function(MODULE, name, params, run))

    add("transfer_kv_dim_exchange", parameters(_OPERANDS, **BUILDS[build]), _exchange)
    for name, (required, body) in _STATE.items():
        add(name, parameters(required, flags=TransferFlag.FAST2D), body)
    return module


def _exchange(call: Call, arguments: Arguments) -> None:
    for name in _SLICES:
        if arguments.get(name) is not None:
            msg = f"{call.name}: {name}={arguments[name]!r}: poolparity does not know what this build does with it"
            raise EmulationGap(msg)
    direction, page_size = _direction(call, arguments), arguments["page_size"]
    device_pages, host_pages = _pages(call, arguments, page_size)
    names = ["k", "v"] + [name for name in ("index_k", "index_k_scale") if _given(arguments, name)]
    parts = [_Pair(call, arguments, name, page_size) for name in names]
    copies: list[Copy] = []
    for part in parts:
        if not part.empty:
            copies += part.copies(device_pages, host_pages, direction, like=parts[0])
    move(call.name, copies)


def _given(arguments: Arguments, name: str) -> bool:
    """Whether both operands of an optional component are there; the vendor's wrapper skips it otherwise."""
    return arguments.get(f"device_{name}") is not None and arguments.get(f"host_{name}") is not None


def _direction(call: Call, arguments: Arguments) -> TransferDirection:
    direction, flags = arguments["direction"], arguments["flags"]
    if not isinstance(direction, TransferDirection) or not isinstance(flags, TransferFlag):
        found = f"direction is {direction!r} and flags is {flags!r}"
        remedy = "import the enums from the vendor module"
        refuse(BadCall, call.name, found, "TransferDirection and TransferFlag", remedy)
    return direction


def _pages(call: Call, arguments: Arguments, page_size: int) -> tuple[Slots, Slots]:
    """Page numbers on the device and on the host. The kernel copies both index lists to the CPU itself."""
    device = call.indices(arguments["device_indices"], "device_indices", dtypes=_INDEX_TYPES)
    host = call.indices(arguments["host_indices"], "host_indices", dtypes=_INDEX_TYPES)
    call.pair(device, host)
    starts = (
        call.page_starts(device, page_size, "device_indices", aligned=True),
        call.page_starts(host, page_size, "host_indices", aligned=True),
    )
    return starts[0] // page_size, starts[1] // page_size


class _Pair:
    """One component: its device operand (layer, page, page_size, head, dim) and host operand (page, layer, …)."""

    def __init__(self, call: Call, arguments: Arguments, name: str, page_size: int) -> None:
        self._call, self._name = call, name
        self.device = call.tensor(arguments[f"device_{name}"], f"device_{name}")
        self.host = call.tensor(arguments[f"host_{name}"], f"host_{name}")
        self.empty = self.device.numel() == 0 or self.host.numel() == 0
        if self.device.dim() == _AXES - 1 and name == "index_k_scale":  # the vendor's wrapper adds the last axis
            self.device = self.device.unsqueeze(-1)
        if not self.empty:
            self._check_shapes(page_size)
            self._check_layout()
        elif name != "v":  # a packed K row holds V too, and V then has width 0
            found = f"device_{name} has {self.device.numel()} and host_{name} {self.host.numel()} elements"
            refuse(BadCall, call.name, found, "rows to move in both", "pass the pools' buffers")

    def _check_shapes(self, page_size: int) -> None:
        call, name, device, host = self._call, self._name, self.device, self.host
        if device.dim() != _AXES or host.dim() != _AXES:
            found = f"device_{name} has {device.dim()} dimensions, host_{name} has {host.dim()}"
            refuse(BadCall, call.name, found, "five of both", "pass (layer, page, token, head, dim) buffers")
        if device.shape[0] != host.shape[1]:
            found = f"the layer number of device_{name} is {device.shape[0]}, that of host_{name} is {host.shape[1]}"
            remedy = "exchange each device pool with its own slice of the host's layers"
            refuse(BadCall, call.name, found, "the same", remedy)
        if device.shape[2] != page_size or host.shape[2] != page_size:
            found = f"device_{name} has pages of {device.shape[2]}, host_{name} of {host.shape[2]} tokens"
            refuse(BadCall, call.name, found, f"page_size {page_size} in both", "pass the pool's page size")
        if device.shape[3:] != host.shape[3:] or device.dtype != host.dtype:
            found = f"device_{name} has rows of {tuple(device.shape[3:])} {device.dtype}"
            found += f", host_{name} of {tuple(host.shape[3:])} {host.dtype}"
            refuse(BadCall, call.name, found, "the same rows", "the kernel takes the device's width for both sides")

    def _check_layout(self) -> None:
        call, name, device, host = self._call, self._name, self.device, self.host
        call.lies(device, f"device_{name}", "device")
        call.lies(host, f"host_{name}", "host")
        if not device.is_contiguous():
            found = f"device_{name} has strides {device.stride()} for shape {tuple(device.shape)}"
            remedy = "the kernel steps from layer to layer by pages * page bytes"
            refuse(BadCall, call.name, found, "a contiguous buffer", remedy)
        if not host[0].is_contiguous():
            found = f"host_{name} has strides {host.stride()} for shape {tuple(host.shape)}"
            remedy = "the kernel writes the layers of a page one after the other"
            refuse(BadCall, call.name, found, "pages that are contiguous over their layers", remedy)

    def copies(
        self, device_pages: Slots, host_pages: Slots, direction: TransferDirection, *, like: _Pair
    ) -> list[Copy]:
        """Page copies of every layer. The kernel takes V's head count and item size from K (`like`)."""
        call, name = self._call, self._name
        if name == "v" and self.heads_and_item() != like.heads_and_item():
            found = f"V has (heads, item bytes) {self.heads_and_item()}, K has {like.heads_and_item()}"
            refuse(BadCall, call.name, found, "the same", "the kernel computes V's row with K's")
        self._check_pages(device_pages, host_pages)
        width = self.device[0, 0].numel() * self.device.element_size()
        on_device = Addressing.strided(device_pages, width, "page")
        in_host = Addressing.strided(host_pages, self.host.stride(0) * self.host.element_size(), "page")
        there, here = region_of(self.device, f"device_{name}", "device"), region_of(self.host, f"host_{name}", "host")
        copies = []
        for layer in range(self.device.shape[0]):
            shift = layer * self.device.shape[1] * width
            device = Rows(f"device_{name} layer {layer}", there, there.start + shift, on_device)
            host = Rows(f"host_{name} layer {layer}", here, here.start + layer * width, in_host)
            both = (device, host) if direction is TransferDirection.D2H else (host, device)
            copies.append(Copy(*both, width))
        return copies

    def _check_pages(self, device_pages: Slots, host_pages: Slots) -> None:
        for what, pages, limit in (
            (f"device_{self._name}", device_pages, self.device.shape[1]),
            (f"host_{self._name}", host_pages, self.host.shape[0]),
        ):
            if pages.size and int(pages.max()) >= limit:
                found, remedy = f"{what}: page {int(pages.max())} of {limit}", "check the indices and the page size"
                refuse(OutOfRegion, self._call.name, found, f"pages 0..{limit}", remedy)

    def heads_and_item(self) -> tuple[int, int]:
        """Head count and bytes of one element."""
        return int(self.device.shape[3]), self.device.element_size()
