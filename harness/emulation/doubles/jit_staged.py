"""Doubles of `HiCacheStagedWriteBackKernel` in `staged_write_back.cuh`: layers to page-first pages through staging.

The kernel gathers whole pages into a staging buffer on the device, then copies each page to the host in one piece. It
reads the start of each source page and the first destination index of each page; it takes the rest to follow.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from harness.emulation.doubles.jit_kernel import (
    INDEX_TYPES,
    Compilation,
    EntryPoint,
    block,
    same_dtype,
    tables,
)
from harness.emulation.doubles.operands import Call, refuse
from harness.emulation.doubles.rows import Addressing, Copy, Rows, move
from harness.errors import BadCall, Misaligned

_UNIT: Final = 16  # bytes of one vector access


def _check(compiled: Compilation) -> None:
    compiled.static_assert(holds=compiled.number(0) % _UNIT == 0, what="the element is no multiple of 16 bytes")


def _all_mla(
    compiled: Compilation, dst: Any, i_dst: Any, staging: Any, pages_src: Any, ptr_src: Any, page_size: int, /
) -> None:
    _staged(compiled, {"": (ptr_src, staging, dst)}, i_dst, pages_src, page_size)


def _all(
    compiled: Compilation,
    k_dst: Any,
    v_dst: Any,
    i_dst: Any,
    staging_k: Any,
    staging_v: Any,
    pages_src: Any,
    k_ptr_src: Any,
    v_ptr_src: Any,
    page_size: int,
    /,
) -> None:
    parts = {"k_": (k_ptr_src, staging_k, k_dst), "v_": (v_ptr_src, staging_v, v_dst)}
    _staged(compiled, parts, i_dst, pages_src, page_size)


def _staged(
    compiled: Compilation, parts: dict[str, tuple[Any, Any, Any]], dst_indices: Any, src_starts: Any, page_size: int
) -> None:
    """`parts`: component -> (pointer table, staging, destination)."""
    call = compiled.start()
    call.positive(page_size=page_size)
    found = tables(call, **{f"{name}ptr_src": part[0] for name, part in parts.items()})
    layers = len(next(iter(found.values())))
    starts = call.indices(src_starts, "page_indices_src", dtypes=INDEX_TYPES, place="device")
    destination = call.indices(dst_indices, "dst_indices_cpu", place="host")
    if destination.size != starts.size * page_size:
        found_counts = f"{destination.size} destination indices for {starts.size} pages of {page_size}"
        refuse(BadCall, call.name, found_counts, "page_size indices a page", "pass whole pages on both sides")
    call.not_negative(starts, "page_indices_src")
    if (starts % page_size).any():
        at = int(np.flatnonzero(starts % page_size)[0])
        told = f"page_indices_src: page {at} of the call starts at slot {int(starts[at])}"
        remedy = "its other tokens are taken to follow and cannot be told apart from another page's"
        refuse(Misaligned, call.name, told, f"a multiple of the page size {page_size}", remedy)
    host_starts = call.page_starts(destination, page_size, "dst_indices_cpu", aligned=False)
    copies: list[Copy] = []
    for name, (_, staging, dst) in parts.items():
        element = _check_buffers(compiled, call, name, staging, dst, (destination.size, layers))
        tokens = (starts[:, None] + np.arange(page_size)).reshape(-1)
        host_tokens = (host_starts[:, None] + np.arange(page_size)).reshape(-1)
        reader = Addressing.strided(tokens, element)
        writer = Addressing.strided(host_tokens, element * layers)
        in_staging = Addressing.strided(np.arange(tokens.size), element * layers)
        for layer, address in enumerate(found[f"{name}ptr_src"]):
            what = f"source {name}".rstrip(" _") + f" layer {layer}"
            call.multiple(f"{what}: the address", address, _UNIT, "vector accesses would fault")
            source = Rows(what, call.memory.resolve(address, what=f"{call.name}: {what}"), address, reader)
            copies += [
                Copy(source, _into(call, staging, f"{name}staging", layer, element, in_staging), element),
                Copy(source, _into(call, dst, f"{name}cache_dst", layer, element, writer), element),
            ]
    move(call.name, copies)


def _check_buffers(
    compiled: Compilation, call: Call, name: str, staging: Any, dst: Any, extent: tuple[int, int]
) -> int:
    """Check staging (tokens, layers, dim) and destination (any, layers, dim); returns the bytes of one element."""
    tokens, layers = extent
    staged = block(call, staging, f"{name}staging", "device", tokens, layers, None)
    stored = block(call, dst, f"{name}cache_dst", "host", None, layers, staged.shape[2])
    same_dtype(call, staging=staged, cache_dst=stored)
    call.multiple(f"{name}staging: the address", staged.data_ptr(), _UNIT, "vector accesses would fault")
    element = staged.shape[2] * staged.element_size()
    if element != compiled.number(0):
        found = f"{name}staging holds elements of {element} bytes"
        expected = f"the {compiled.number(0)} bytes that the module was compiled for"
        refuse(BadCall, call.name, found, expected, "check element_size and the dtype of the pool")
    return element


def _into(call: Call, tensor: Any, operand: str, layer: int, element: int, addressing: Addressing) -> Rows:
    return Rows(
        f"{operand} layer {layer}", call.region(tensor, operand), tensor.data_ptr() + layer * element, addressing
    )


_OWNER: Final = "HiCacheStagedWriteBackKernel::"
STAGED: Final = {
    _OWNER + "run_all_lf_pf_staged": EntryPoint("all_layer_staged_lf_pf", _check, _all),
    _OWNER + "run_all_mla_lf_pf_staged": EntryPoint("all_layer_mla_staged_lf_pf", _check, _all_mla),
}
