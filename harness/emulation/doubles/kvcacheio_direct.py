"""The three `direct` transfers of `sgl_kernel.kvcacheio`: copies of tensor slices, driven by the host.

`transfer_kv_direct` copies token by token (runs merged). The two page-first ones read only the first index of each page
and copy whole pages, on CUDA by raw address with one stride for all layers (transfer.cu, commit 01068614).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import torch

from harness.emulation.doubles.operands import Call, refuse
from harness.emulation.doubles.rows import Addressing, Copy, Rows, Slots, move
from harness.emulation.doubles.signature import Arguments
from harness.emulation.memory import Kind, region_of
from harness.errors import BadCall


def _tensors(call: Call, value: Any, what: str, place: Kind | None = None) -> list[torch.Tensor]:
    """Return a non-empty list of tensors."""
    if not isinstance(value, (list, tuple)) or not value:
        found = f"{what} is {value!r}" if not isinstance(value, torch.Tensor) else f"{what} is one tensor"
        refuse(BadCall, call.name, found, "a list of tensors", "wrap a single buffer in a list")
    tensors = [call.tensor(tensor, f"{what}[{number}]") for number, tensor in enumerate(value)]
    for number, tensor in enumerate(tensors):
        call.lies(tensor, f"{what}[{number}]", place)
    return tensors


def _row_bytes(call: Call, tensor: torch.Tensor, what: str, *, packed: bool = True) -> int:
    """Return the bytes of `tensor[i]`, which must be contiguous; `packed` rows also follow each other without gaps."""
    row = tensor.element_size()
    stride: list[int] = []
    for size in reversed(tensor.shape[1:]):
        stride.insert(0, row // tensor.element_size())
        row *= size
    gaps = tensor.dim() > 0 and packed and tensor.shape[0] > 1 and tensor.stride(0) * tensor.element_size() != row
    if tensor.dim() < 1 or list(tensor.stride()[1:]) != stride or gaps:
        found = f"{what} has shape {tuple(tensor.shape)} and strides {tensor.stride()}"
        refuse(BadCall, call.name, found, "contiguous rows", "pass the buffer of one layer as it was allocated")
    return int(row)


def _same_rows(call: Call, tensors: Sequence[torch.Tensor], what: str) -> int:
    """Return the row bytes that all the tensors share; their dtypes and row shapes must be equal too."""
    sizes = [_row_bytes(call, tensor, f"{what}[{number}]") for number, tensor in enumerate(tensors)]
    first = tensors[0]
    for number, tensor in enumerate(tensors):
        if tensor.dtype != first.dtype or tensor.shape[1:] != first.shape[1:]:
            found = f"{what}[{number}] has rows of {tuple(tensor.shape[1:])} {tensor.dtype}"
            expected = f"{tuple(first.shape[1:])} {first.dtype} as in {what}[0]"
            refuse(BadCall, call.name, found, expected, "one call moves rows of one kind")
    return sizes[0]


def _check_same_kind(call: Call, source: torch.Tensor, destination: torch.Tensor, rows: tuple[Any, Any]) -> None:
    if source.dtype != destination.dtype or rows[0] != rows[1]:
        found = (
            f"source rows of {tuple(rows[0])} {source.dtype}, destination rows of {tuple(rows[1])} {destination.dtype}"
        )
        remedy = "the copy would convert or broadcast; pass buffers of the same rows"
        refuse(BadCall, call.name, found, "the same on both sides", remedy)


def _rows(tensor: torch.Tensor, what: str, operand: str, addressing: Addressing, shift: int = 0) -> Rows:
    region = region_of(tensor, operand, None)
    return Rows(what, region, region.start + shift, addressing)


def _direct(call: Call, arguments: Arguments) -> None:
    sources = _tensors(call, arguments["src_layers"], "src_layers")
    destinations = _tensors(call, arguments["dst_layers"], "dst_layers")
    if len(sources) != len(destinations):
        found = f"{len(sources)} source and {len(destinations)} destination layers"
        refuse(BadCall, call.name, found, "as many of both", "pass each layer with its mirror")
    source, destination = _indices(call, arguments)
    call.whole_pages(source.size, arguments["page_size"])
    copies = []
    for layer, (one, other) in enumerate(zip(sources, destinations, strict=True)):
        row_bytes = _row_bytes(call, one, f"src_layers[{layer}]", packed=False)
        _check_same_kind(call, one, other, (one.shape[1:], other.shape[1:]))
        _row_bytes(call, other, f"dst_layers[{layer}]", packed=False)
        reader = _rows(one, f"source layer {layer}", f"src_layers[{layer}]", _by_row(one, source))
        writer = _rows(other, f"destination layer {layer}", f"dst_layers[{layer}]", _by_row(other, destination))
        copies.append(Copy(reader, writer, row_bytes))
    move(call.name, copies)


def _by_row(tensor: torch.Tensor, slots: Slots) -> Addressing:
    return Addressing.strided(slots, tensor.stride(0) * tensor.element_size())


def _indices(call: Call, arguments: Arguments) -> tuple[Slots, Slots]:
    """Return both index lists; they may lie anywhere, the host reads them."""
    source = call.indices(arguments["src_indices"], "src_indices")
    destination = call.indices(arguments["dst_indices"], "dst_indices")
    call.pair(source, destination)
    call.not_negative(source, "src_indices")
    call.not_negative(destination, "dst_indices")
    return source, destination


def _all_layer_lf_pf(call: Call, arguments: Arguments) -> None:
    layers = _tensors(call, arguments["src_ptrs"], "src_ptrs", "device")
    hosts = _tensors(call, arguments["dst_ptrs"], "dst_ptrs", "host")
    pages = _Pages(call, arguments, layers, hosts, ("src_ptrs", "dst_ptrs"))
    copies = pages.copies(start_layer=0, device="src_indices", host="dst_indices")
    move(call.name, [Copy(device, host, pages.page_bytes) for device, host in copies])


def _per_layer_pf_lf(call: Call, arguments: Arguments) -> None:
    hosts = _tensors(call, arguments["src_ptrs"], "src_ptrs", "host")
    layers = _tensors(call, arguments["dst_ptrs"], "dst_ptrs", "device")
    pages = _Pages(call, arguments, layers, hosts, ("dst_ptrs", "src_ptrs"))
    copies = pages.copies(start_layer=arguments["layer_id"], device="dst_indices", host="src_indices")
    move(call.name, [Copy(host, device, pages.page_bytes) for device, host in copies])


class _Pages:
    """Whole pages between layer tensors (token, …) and one or two page-first buffers (page, layer, page_size, …).

    One buffer means MLA; two mean K and V, whose layer tensors are listed K first, then V.
    """

    def __init__(
        self,
        call: Call,
        arguments: Arguments,
        layers: list[torch.Tensor],
        hosts: list[torch.Tensor],
        names: tuple[str, str],
    ) -> None:
        self._call, self._arguments, self._layers, self._hosts, self._names = call, arguments, layers, hosts, names
        self._page_size: int = arguments["page_size"]
        call.positive(page_size=self._page_size)
        if len(hosts) > 2 or len(layers) % len(hosts):  # noqa: PLR2004 - K and V
            found = f"{len(hosts)} page-first buffers and {len(layers)} layer tensors"
            refuse(BadCall, call.name, found, "one buffer (MLA), or two and as many K as V layers", "check the lists")
        self.page_bytes = _same_rows(call, layers, names[0]) * self._page_size
        for number, host in enumerate(hosts):
            self._check_host(host, f"{names[1]}[{number}]")

    def _check_host(self, host: torch.Tensor, what: str) -> None:
        call = self._call
        if host.dim() < 3 or host.shape[2] != self._page_size or not host.is_contiguous():  # noqa: PLR2004 - see below
            found = f"{what} has shape {tuple(host.shape)} and strides {host.stride()}"
            expected = f"a contiguous (page, layer, {self._page_size}, …) buffer"
            refuse(BadCall, call.name, found, expected, "pass the whole page_first_direct buffer and its page size")
        _check_same_kind(call, self._layers[0], host, (self._layers[0].shape[1:], host.shape[3:]))

    def copies(self, *, start_layer: int, device: str, host: str) -> list[tuple[Rows, Rows]]:
        """(device rows, host rows) of every layer, a row being a page."""
        call, size = self._call, self._page_size
        _indices(call, self._arguments)
        starts = call.page_starts(call.indices(self._arguments[device], device), size, device, aligned=False)
        pages = call.page_starts(call.indices(self._arguments[host], host), size, host, aligned=True) // size
        depth = len(self._layers) // len(self._hosts)
        if start_layer < 0 or start_layer + depth > self._hosts[0].shape[1]:
            found = f"layers {start_layer}..{start_layer + depth} of a buffer with {self._hosts[0].shape[1]} layers"
            refuse(BadCall, call.name, found, "layers inside the buffer", "check layer_id and the list of layers")
        on_device = Addressing.strided(starts, self.page_bytes // size)
        return [
            self._copy(number, number // depth, start_layer + number % depth, on_device, pages)
            for number in range(len(self._layers))
        ]

    def _copy(self, number: int, part: int, layer: int, on_device: Addressing, pages: Slots) -> tuple[Rows, Rows]:
        host = self._hosts[part]
        component = f" {'kv'[part]}" if len(self._hosts) > 1 else ""
        in_host = Addressing.strided(pages, host.shape[1] * self.page_bytes, "page")
        return (
            _rows(self._layers[number], f"device{component} layer {layer}", f"{self._names[0]}[{number}]", on_device),
            _rows(
                host, f"host{component} layer {layer}", f"{self._names[1]}[{part}]", in_host, layer * self.page_bytes
            ),
        )


DIRECT: Final[dict[str, tuple[str, Callable[[Call, Arguments], None]]]] = {
    "transfer_kv_direct": ("src_layers dst_layers src_indices dst_indices page_size", _direct),
    "transfer_kv_all_layer_direct_lf_pf": ("src_ptrs dst_ptrs src_indices dst_indices page_size", _all_layer_lf_pf),
    "transfer_kv_per_layer_direct_pf_lf": (
        "src_ptrs dst_ptrs src_indices dst_indices layer_id page_size",
        _per_layer_pf_lf,
    ),
}
"""Public name -> (parameters, body). None has a default."""
