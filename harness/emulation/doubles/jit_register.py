"""Doubles of `HiCacheKernel` in `hicache.cuh`: rows through registers, one vector package a lane."""

from __future__ import annotations

from typing import Any, Final

from harness.emulation.doubles.jit_kernel import Compilation, EntryPoint
from harness.emulation.doubles.jit_rows import Demands, all_layers, one_layer
from harness.emulation.doubles.operands import Call, refuse
from harness.errors import BadCall

_COPY_GROUP: Final = 32  # lanes that share an element, before `unroll` divides them
_PACKAGES: Final = (4, 8, 16)  # bytes that a lane can move at once
_ROUNDS: Final = {"cuda": (128,), "rocm": (128, 64, 32, 16)}
"""Bytes that a worker moves in one round, widest first. ROCm has the narrow ones from 0.5.21 on; SGLang's own check
keeps earlier releases from asking for them."""


def package_bytes(platform: str, element_size: int, unroll: int) -> int:
    """Bytes that a lane moves at once; 0 when no package tiles an element across the lanes."""
    if unroll <= 0 or unroll > _COPY_GROUP or _COPY_GROUP % unroll:
        return 0
    lanes = _COPY_GROUP // unroll
    for width in _ROUNDS.get(platform, ()):
        if width % lanes == 0 and element_size % width == 0 and width // lanes in _PACKAGES:
            return width // lanes
    return 0


def _check(compiled: Compilation) -> None:
    element, unroll, threads = compiled.number(0), compiled.number(1), compiled.number(3)
    tiles = package_bytes(compiled.platform, element, unroll) != 0
    compiled.static_assert(holds=tiles, what="no 4/8/16 B package tiles the element across the lanes")
    compiled.static_assert(holds=threads % _COPY_GROUP == 0, what="the block is no multiple of the copy group")


def _kernel(compiled: Compilation, call: Call, width: int) -> Demands:
    if width != compiled.number(0):
        found, expected = f"rows of {width} bytes", f"the {compiled.number(0)} bytes that the module was compiled for"
        refuse(BadCall, call.name, found, expected, "check element_dim and the dtype of the cache")
    return Demands(package_bytes(compiled.platform, width, compiled.number(1)), takes_empty=False)


def _one(compiled: Compilation, k_dst: Any, v_dst: Any, i_dst: Any, k_src: Any, v_src: Any, i_src: Any, /) -> None:
    one_layer(_kernel, compiled, {"k_": (k_src, k_dst), "v_": (v_src, v_dst)}, (i_src, i_dst))


def _one_mla(compiled: Compilation, dst: Any, i_dst: Any, src: Any, i_src: Any, /) -> None:
    one_layer(_kernel, compiled, {"": (src, dst)}, (i_src, i_dst))


def _all(
    compiled: Compilation, k_dst: Any, v_dst: Any, i_dst: Any, k_src: Any, v_src: Any, i_src: Any, ss: int, ds: int, /
) -> None:
    parts = {"k_": (k_src, k_dst), "v_": (v_src, v_dst)}
    all_layers(_kernel, compiled, parts, (i_src, i_dst), (ss, ds), compiled.number(0))


def _all_mla(compiled: Compilation, dst: Any, i_dst: Any, src: Any, i_src: Any, ss: int, ds: int, /) -> None:
    all_layers(_kernel, compiled, {"": (src, dst)}, (i_src, i_dst), (ss, ds), compiled.number(0))


REGISTER: Final = {
    "HiCacheKernel::run_one": EntryPoint("one_layer", _check, _one),
    "HiCacheKernel::run_one_mla": EntryPoint("one_layer_mla", _check, _one_mla),
    "HiCacheKernel::run_all": EntryPoint("all_layer", _check, _all),
    "HiCacheKernel::run_all_mla": EntryPoint("all_layer_mla", _check, _all_mla),
}
