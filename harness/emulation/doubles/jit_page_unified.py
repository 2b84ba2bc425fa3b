"""Doubles of the page_unified kernels. Host pages hold (head group, layer, K/V, token, row), or (layer, token, row).

Load-back: `HiCacheKernel::run_one_page_unified` in `hicache.cuh` (sglang 0.5.21 on), by token indices. Write-back:
`HiCachePageUnifiedWriteBackKernel` in `staged_write_back.cuh` (0.5.22 on), by page numbers. No pool calls either yet.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from harness.emulation.doubles.jit_kernel import (
    INDEX_TYPES,
    Compilation,
    EntryPoint,
    block,
    index_pair,
    same_dtype,
    tables,
)
from harness.emulation.doubles.operands import Call, refuse
from harness.emulation.doubles.rows import Addressing, Copy, Rows, Slots, move
from harness.errors import BadCall, OutOfRegion

_UNIT: Final = 16  # bytes of one vector access


def _check(compiled: Compilation) -> None:
    row = compiled.number(0)
    compiled.static_assert(holds=row > 0 and row % _UNIT == 0, what="the row is no positive multiple of 16 bytes")


class _Page:
    """Offsets inside a page_unified page: `cell(group, layer, part)` is where that run of `page_size` rows starts."""

    def __init__(self, call: Call, *, row: int, parts: int, layers: int, groups: int, page_size: int) -> None:
        call.positive(num_layers=layers, num_groups=groups, page_size=page_size)
        if parts == 1 and groups != 1:
            refuse(BadCall, call.name, f"num_groups is {groups}", "1 for MLA", "MLA has one latent row and no heads")
        self.row, self.parts, self.layers, self.groups, self.page_size = row, parts, layers, groups, page_size
        self.nbytes = groups * layers * parts * page_size * row
        self.device_row = groups * row

    def cell(self, group: int, layer: int, part: int) -> int:
        """Byte offset in the page."""
        return ((group * self.layers + layer) * self.parts + part) * self.page_size * self.row

    def cells(self, layers: range) -> Iterator[tuple[int, int, int]]:
        """Every (group, layer, part) of some layers."""
        for group in range(self.groups):
            for layer in layers:
                for part in range(self.parts):
                    yield group, layer, part

    def check(self, call: Call, tensor: Any, operand: str) -> None:
        """Refuse a buffer whose page has another size, or whose address breaks vector accesses."""
        found = tensor.shape[1] * tensor.element_size()
        if found != self.nbytes:
            told = f"{operand} has pages of {found} bytes"
            refuse(BadCall, call.name, told, f"{self.nbytes} bytes by the given sizes", "check layers, groups and page")
        call.multiple(f"{operand}: the address", tensor.data_ptr(), _UNIT, "vector accesses would fault")


def _load(
    parts: int,
    compiled: Compilation,
    k_dst: Any,
    v_dst: Any,
    src: Any,
    i_src: Any,
    i_dst: Any,
    layer_id: int,
    num_layers: int,
    num_groups: int,
    page_size: int,
    /,
) -> None:
    call = compiled.start()
    page = _Page(call, row=compiled.number(0), parts=parts, layers=num_layers, groups=num_groups, page_size=page_size)
    destinations = [block(call, k_dst, "k_cache_dst", "device", None, None)]
    if parts > 1:
        destinations.append(block(call, v_dst, "v_cache_dst", "device", None, destinations[0].shape[1]))
    host = block(call, src, "src", None, None, None)
    same_dtype(call, cache_dst=destinations[0], src=host, v_cache_dst=destinations[-1])
    source, destination = index_pair(call, i_src, i_dst, ("src_indices", "dst_indices"))
    if not 0 <= layer_id < num_layers:
        refuse(OutOfRegion, call.name, f"layer_id is {layer_id}", f"0..{num_layers}", "pass the host pool's layer")
    page.check(call, host, "src")
    for number, tensor in enumerate(destinations):
        _check_device_row(call, page, tensor, "kv"[number])
    call.not_negative(source, "src_indices")
    call.not_negative(destination, "dst_indices")
    reader = Addressing(source // page_size * page.nbytes + source % page_size * page.row, source)
    writer = Addressing.strided(destination, page.device_row)
    copies = []
    for group, layer, part in page.cells(range(layer_id, layer_id + 1)):
        shift, target = page.cell(group, layer, part), destinations[part]
        what = f"{'kv'[part]} layer {layer} group {group}"
        one = Rows(f"source {what}", call.region(host, "src"), host.data_ptr() + shift, reader)
        base = target.data_ptr() + group * page.row
        other = Rows(f"destination {what}", call.region(target, f"{'kv'[part]}_cache_dst"), base, writer)
        copies.append(Copy(one, other, page.row))
    move(call.name, copies)


def _check_device_row(call: Call, page: _Page, tensor: Any, component: str) -> None:
    found = tensor.shape[1] * tensor.element_size()
    if found != page.device_row:
        told = f"{component}_cache_dst has rows of {found} bytes"
        refuse(
            BadCall, call.name, told, f"{page.device_row} bytes by the given sizes", "pass one layer as (token, row)"
        )
    call.multiple(f"{component}_cache_dst: the address", tensor.data_ptr(), _UNIT, "vector accesses would fault")


def _write_back(
    compiled: Compilation,
    dst: Any,
    staging: Any,
    k_ptr_src: Any,
    v_ptr_src: Any,
    src_pages: Any,
    dst_pages: Any,
    num_groups: int,
    page_size: int,
    /,
) -> None:
    call, parts = compiled.start(), 1 if compiled.flag(1) else 2
    pointers = tables(call, **dict(list({"k": k_ptr_src, "v": v_ptr_src}.items())[:parts]))
    layers = len(pointers["k"])
    page = _Page(call, row=compiled.number(0), parts=parts, layers=layers, groups=num_groups, page_size=page_size)
    source = call.indices(src_pages, "src_pages", dtypes=INDEX_TYPES, place="device")
    destination = call.indices(dst_pages, "dst_pages", place="host")
    call.pair(source, destination)
    staged = block(call, staging, "staging", "device", source.size, None)
    host = block(call, dst, "dst", "host", None, staged.shape[1])
    same_dtype(call, staging=staged, dst=host)
    page.check(call, staged, "staging")
    call.not_negative(source, "src_pages")
    call.not_negative(destination, "dst_pages")
    targets = {"staging": (staged, np.arange(source.size)), "dst": (host, destination)}
    copies: list[Copy] = []
    for group, layer, part in page.cells(range(layers)):
        address, what = pointers["kv"[part]][layer], f"source {'kv'[part]} layer {layer} group {group}"
        region = call.memory.resolve(address, what=f"{call.name}: {what}")
        reader = Rows(what, region, address + group * page.row, _device_rows(source, page))
        for operand, (tensor, pages) in targets.items():
            base = tensor.data_ptr() + page.cell(group, layer, part)
            writer = Rows(f"{operand} {what[7:]}", call.region(tensor, operand), base, _host_rows(pages, page))
            copies.append(Copy(reader, writer, page.row))
    move(call.name, copies)


def _device_rows(pages: Slots, page: _Page) -> Addressing:
    tokens = (pages[:, None] * page.page_size + np.arange(page.page_size)).reshape(-1)
    return Addressing.strided(tokens, page.device_row)


def _host_rows(pages: Slots, page: _Page) -> Addressing:
    offsets = pages[:, None] * page.nbytes + np.arange(page.page_size) * page.row
    return Addressing(offsets.reshape(-1), np.repeat(pages, page.page_size), "page")


PAGE_UNIFIED: Final = {
    "HiCacheKernel::run_one_page_unified<false>": EntryPoint(
        "one_layer_page_unified", _check, functools.partial(_load, 2)
    ),
    "HiCacheKernel::run_one_page_unified<true>": EntryPoint(
        "one_layer_mla_page_unified", _check, functools.partial(_load, 1)
    ),
    "HiCachePageUnifiedWriteBackKernel::run": EntryPoint("all_layer_page_unified", _check, _write_back),
}
