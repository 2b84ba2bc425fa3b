"""Doubles of `HiCacheTmaKernel` in `hicache_tma.cuh` (sglang 0.5.21 on): rows through shared memory, on sm_90."""

from __future__ import annotations

from typing import Any, Final

from harness.emulation.doubles.jit_kernel import Compilation, EntryPoint
from harness.emulation.doubles.jit_rows import Demands, all_layers, one_layer
from harness.emulation.doubles.operands import Call, refuse
from harness.errors import BadCall

_UNIT: Final = 16  # bytes; what a bulk copy moves and is aligned to
_MIN_STAGES: Final = 3
_ROWS_PER_STAGE: Final = 128
_SHARED_MEMORY: Final = 232448  # bytes a block may opt in to on compute capability 9.0 (CUDA programming guide)


def shared_bytes(stage_bytes: int, stages: int) -> int:
    """Shared memory of one block: the ring of stages, each with its destination indices, a flag and two barriers."""
    flags = (stages * 4 + 7) // 8 * 8
    used = stages * (stage_bytes + _ROWS_PER_STAGE * 8) + flags + 2 * stages * 8
    return (used + 127) // 128 * 128


def _check(compiled: Compilation) -> None:
    stage_bytes, stages, store_warps = (compiled.number(position) for position in range(3))
    compiled.static_assert(holds=compiled.platform == "cuda", what="the bulk copies are CUDA's own")
    compiled.static_assert(holds=stage_bytes % 128 == 0, what="the stage is no multiple of 128 bytes")
    compiled.static_assert(holds=stages >= _MIN_STAGES and store_warps >= 1, what="too few stages or store warps")


def _kernel(compiled: Compilation, call: Call, width: int) -> Demands:
    call.positive(row_bytes=width)
    call.multiple("the row size", width, _UNIT, "TMA copies 16-byte units")
    if width > compiled.number(0):
        found, expected = f"rows of {width} bytes", f"at most the {compiled.number(0)} bytes of a stage"
        refuse(BadCall, call.name, found, expected, "use the register kernel for such rows")
    return Demands(_UNIT, takes_empty=True)


def _one(compiled: Compilation, k_dst: Any, v_dst: Any, i_dst: Any, k_src: Any, v_src: Any, i_src: Any, /) -> None:
    one_layer(_kernel, compiled, {"k_": (k_src, k_dst), "v_": (v_src, v_dst)}, (i_src, i_dst))


def _one_mla(compiled: Compilation, dst: Any, i_dst: Any, src: Any, i_src: Any, /) -> None:
    one_layer(_kernel, compiled, {"": (src, dst)}, (i_src, i_dst))


def _all(
    compiled: Compilation,
    k_dst: Any,
    v_dst: Any,
    i_dst: Any,
    k_src: Any,
    v_src: Any,
    i_src: Any,
    ss: int,
    ds: int,
    width: int,
    /,
) -> None:
    parts = {"k_": (k_src, k_dst), "v_": (v_src, v_dst)}
    all_layers(_kernel, compiled, parts, (i_src, i_dst), (ss, ds), width)


def _all_mla(
    compiled: Compilation, dst: Any, i_dst: Any, src: Any, i_src: Any, ss: int, ds: int, width: int, /
) -> None:
    all_layers(_kernel, compiled, {"": (src, dst)}, (i_src, i_dst), (ss, ds), width)


def _fits_device(compiled: Compilation, _device: int, /) -> bool:
    return shared_bytes(compiled.number(0), compiled.number(1)) <= _SHARED_MEMORY


TMA: Final = {
    "HiCacheTmaKernel::run_one": EntryPoint("tma_one_layer", _check, _one),
    "HiCacheTmaKernel::run_one_mla": EntryPoint("tma_one_layer_mla", _check, _one_mla),
    "HiCacheTmaKernel::run_all": EntryPoint("tma_all_layer", _check, _all),
    "HiCacheTmaKernel::run_all_mla": EntryPoint("tma_all_layer_mla", _check, _all_mla),
    "HiCacheTmaKernel::fits_device": EntryPoint("tma_fits_device", _check, _fits_device),
}
