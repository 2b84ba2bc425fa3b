"""Backup and load as one Triton kernel, for CUDA, ROCm and Ascend (triton-ascend); under the interpreter on the CPU.

Importing this module needs triton. With TRITON_INTERPRET=1 set before that import it runs on CPU tensors.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from reference.kernels.planes import Planes, check_planes

# Words that a program copies at a time.
_BLOCK = 256


@triton.jit  # type: ignore[untyped-decorator]  # triton ships no types
def _copy_rows(
    dst_table: Any,
    src_table: Any,
    dst_slots: Any,
    src_slots: Any,
    page_size: Any,
    row_words: Any,
    dst_page_stride: Any,
    dst_slot_stride: Any,
    src_page_stride: Any,
    src_slot_stride: Any,
    WORD: tl.constexpr,  # noqa: N803 - Triton's constants are written so
    BLOCK: tl.constexpr,  # noqa: N803
) -> None:
    """Program (i, layer) copies one row; strides are in words, tables hold the address of each plane."""
    i, layer = tl.program_id(0), tl.program_id(1)
    to, source = tl.load(dst_slots + i), tl.load(src_slots + i)
    dst = tl.load(dst_table + layer).to(tl.pointer_type(WORD), bitcast=True)
    src = tl.load(src_table + layer).to(tl.pointer_type(WORD), bitcast=True)
    dst += to // page_size * dst_page_stride + to % page_size * dst_slot_stride
    src += source // page_size * src_page_stride + source % page_size * src_slot_stride
    for start in range(0, row_words, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < row_words
        tl.store(dst + at, tl.load(src + at, mask=inside), mask=inside)


def copy(dst: Planes, dst_indices: torch.Tensor, src: Planes, src_indices: torch.Tensor) -> None:
    """Let row dst_indices[i] of each plane of dst become row src_indices[i] of the same plane of src.

    Planes are uint8 (pages, page_size, row_bytes), indices int64 token slots. Memory on the host must be accessible to
    the device (pinned). Raises ValueError or IndexError as `check_planes`; nothing is written then.
    """
    check_planes(dst, dst_indices, src, src_indices)
    if len(dst_indices) == 0:
        return
    device = next((p.device for p in (*dst, *src) if p.device.type != "cpu"), torch.device("cpu"))
    page_size, row_bytes = dst[0].shape[1:]
    strides = [step for plane in (dst[0], src[0]) for step in plane.stride()[:2]]
    starts = [plane.data_ptr() for plane in (*dst, *src)]
    word, size = _word(row_bytes, *strides, *starts)
    _copy_rows[len(dst_indices), len(dst)](
        _table(dst, device),
        _table(src, device),
        dst_indices.to(device),
        src_indices.to(device),
        page_size,
        row_bytes // size,
        *(step // size for step in strides),
        WORD=word,
        BLOCK=_BLOCK,
    )


def _table(planes: Planes, device: torch.device) -> torch.Tensor:
    return torch.tensor([plane.data_ptr() for plane in planes], dtype=torch.int64, device=device)


def _word(*multiples: int) -> tuple[Any, int]:
    """Return the widest word that divides every size and address, and its bytes."""
    for word, size in ((tl.int64, 8), (tl.int32, 4), (tl.int16, 2)):
        if not any(value % size for value in multiples):
            return word, size
    return tl.uint8, 1
