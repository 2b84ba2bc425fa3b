"""What the JIT kernels that move rows by token index have in common; `hicache.cuh` and `hicache_tma.cuh` differ little.

Read in sglang 0.5.16 to 0.5.23. Indices are int32 or int64 on the device; row strides are free; MLA has one component,
the others have K and V with the same row width and strides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.emulation.doubles.jit_kernel import Compilation, RowView, index_pair, row_view, same_dtype, tables
from harness.emulation.doubles.operands import Call, refuse
from harness.emulation.doubles.rows import Addressing, Copy, Rows, Slots, move
from harness.errors import BadCall


@dataclass(frozen=True, slots=True)
class Demands:
    """What one kernel demands: the alignment of addresses and strides, and whether it takes an empty index list."""

    alignment: int
    takes_empty: bool


Kernel = Callable[[Compilation, Call, int], Demands]
"""Checks a row width in bytes against the compiled module and returns the kernel's demands."""

Parts = Mapping[str, tuple[Any, Any]]
"""Component ("k_", "v_", or "" for MLA) -> its (source, destination) operand."""

_SIDES: Final = ("source", "destination")


def one_layer(kernel: Kernel, compiled: Compilation, parts: Parts, indices: tuple[Any, Any]) -> None:
    """Move rows of one layer. `indices` are (source, destination)."""
    call = compiled.start()
    views = {
        name: (row_view(call, source, f"{name}cache_src"), row_view(call, destination, f"{name}cache_dst"))
        for name, (source, destination) in parts.items()
    }
    every = {
        f"{name}cache_{side}": view
        for name, pair in views.items()
        for side, view in zip(("src", "dst"), pair, strict=True)
    }
    same_dtype(call, **{name: view.tensor for name, view in every.items()})
    width = _shared(call, "row width", {name: view.width for name, view in every.items()})
    strides = (
        _shared(call, "row stride", {f"{name}cache_src": pair[0].stride for name, pair in views.items()}),
        _shared(call, "row stride", {f"{name}cache_dst": pair[1].stride for name, pair in views.items()}),
    )
    slots = index_pair(call, *indices, ("indices_src", "indices_dst"))
    demands = kernel(compiled, call, width)
    addressing = [Addressing.strided(side, stride) for side, stride in zip(slots, strides, strict=True)]
    pairs = [
        (
            _of_view(call, pair[0], _label("source", name), f"{name}cache_src", addressing[0]),
            _of_view(call, pair[1], _label("destination", name), f"{name}cache_dst", addressing[1]),
        )
        for name, pair in views.items()
    ]
    _move(call, demands, width, pairs, strides, slots)


def all_layers(
    kernel: Kernel,
    compiled: Compilation,
    parts: Parts,
    indices: tuple[Any, Any],
    strides: tuple[int, int],
    width: int,
) -> None:
    """Move rows of all layers through pointer tables; `strides` (source, destination) and `width` are bytes."""
    call = compiled.start()
    found = tables(
        call,
        **{f"{name}ptr_src": pair[0] for name, pair in parts.items()},
        **{f"{name}ptr_dst": pair[1] for name, pair in parts.items()},
    )
    slots = index_pair(call, *indices, ("indices_src", "indices_dst"))
    demands = kernel(compiled, call, width)
    call.positive(src_stride_bytes=strides[0], dst_stride_bytes=strides[1])
    addressing = [Addressing.strided(side, stride) for side, stride in zip(slots, strides, strict=True)]
    pairs = []
    for name in parts:
        pointers = zip(found[f"{name}ptr_src"], found[f"{name}ptr_dst"], strict=True)
        for layer, addresses in enumerate(pointers):
            source, destination = (
                _at(call, f"{_label(side, name)} layer {layer}", address, offsets)
                for side, address, offsets in zip(_SIDES, addresses, addressing, strict=True)
            )
            pairs.append((source, destination))
    if pairs:
        _move(call, demands, width, pairs, strides, slots)


def _label(side: str, component: str) -> str:
    return f"{side} {component}".rstrip(" _")


def _shared(call: Call, what: str, values: Mapping[str, int]) -> int:
    if len(set(values.values())) > 1:
        found = ", ".join(f"{name} has a {what} of {value} bytes" for name, value in values.items())
        refuse(BadCall, call.name, found, f"one {what}", "view the caches with the same row width and layout")
    return next(iter(values.values()))


def _of_view(call: Call, view: RowView, what: str, operand: str, addressing: Addressing) -> Rows:
    return Rows(what, call.region(view.tensor, operand), view.tensor.data_ptr(), addressing)


def _at(call: Call, what: str, address: int, addressing: Addressing) -> Rows:
    return Rows(what, call.memory.resolve(address, what=f"{call.name}: {what}"), address, addressing)


def _move(
    call: Call,
    demands: Demands,
    width: int,
    pairs: Sequence[tuple[Rows, Rows]],
    strides: tuple[int, int],
    slots: tuple[Slots, Slots],
) -> None:
    """Check what the kernel demands of indices, addresses and strides, then move the rows."""
    if not demands.takes_empty and not slots[0].size:
        remedy = "the launch has an empty grid and fails; skip the call when there is nothing to move"
        refuse(BadCall, call.name, "the index list is empty", "at least one index", remedy)
    for side, side_slots, stride in zip(_SIDES, slots, strides, strict=True):
        call.not_negative(side_slots, f"the {side} indices")
        call.multiple(f"the {side} stride", stride, demands.alignment, "vector accesses would fault")
    for rows in (rows for pair in pairs for rows in pair):
        call.multiple(f"{rows.what}: the address", rows.base, demands.alignment, "vector accesses would fault")
    move(call.name, [Copy(source, destination, width) for source, destination in pairs])
