"""The conversions of weight formats, each held against the reference; one check a case.

A conversion that is exact is compared to the bit. A quantisation may choose its scale and break ties as it likes; it
is held to what it must keep: no number may have a nearer neighbour in the format.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch

from harness.checks.meter import Meter
from harness.checks.moe_explain import first_difference, same_bytes
from harness.checks.moe_format_ports import INT8_BLOCK, Formats
from reference.moe.formats import fp8, mxfp4
from reference.moe.formats.blocks import blocks_of

Check = Callable[[Formats, torch.Generator, Meter], None]
# No multiple of the block: the last blocks are partial.
_SHAPE: Final = (200, 300)
# Where a quantisation may end its range. The fnuz encoding reaches 240; ROCm code stops at 224 on purpose, because its
# neighbours' kernels saturate there.
_ENDS: Final = {torch.float8_e4m3fn: (448.0,), torch.float8_e4m3fnuz: (240.0, 224.0)}


def _same(what: str, found: torch.Tensor, wanted: torch.Tensor, meter: Meter) -> None:
    meter.compared(wanted.nbytes)
    if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
        form = f"{tuple(found.shape)} {found.dtype}; expected {tuple(wanted.shape)} {wanted.dtype}"
        msg = f"{what}: the result is {form}"
        raise AssertionError(msg)
    if not same_bytes(found, wanted):
        msg = f"{what}: {first_difference(found, wanted)}; {_ratio(found, wanted)}"
        raise AssertionError(msg)


def _ratio(found: torch.Tensor, wanted: torch.Tensor) -> str:
    """Say when one factor explains every difference, as a scale with a wrong bias does; else whether values moved."""
    a, b = found.double().flatten(), wanted.double().flatten()
    usable = a.isfinite() & b.isfinite() & (b != 0)
    ratios = set((a[usable] / b[usable]).tolist())
    if len(ratios) == 1:
        return f"every value is {ratios.pop():g} times the expected one"
    moved = torch.equal(a.sort().values, b.sort().values)
    return "the values are the right ones in other places" if moved else "no single factor explains it"


def mxfp4_dequantize(formats: Formats, generator: torch.Generator, meter: Meter) -> None:
    """Every finite scale with random codes, and every byte of two codes."""
    packed = torch.randint(0, 256, (255, mxfp4.BLOCK // 2), generator=generator, dtype=torch.uint8)
    packed.view(-1)[1024:1280] = torch.arange(256, dtype=torch.uint8)
    scales = torch.arange(255, dtype=torch.uint8).unsqueeze(-1)
    found = formats.mxfp4_dequantize(packed, scales)
    _same("MXFP4 bytes to float32", found, mxfp4.dequantize(packed, scales), meter)


def mxfp4_quantize(formats: Formats, generator: torch.Generator, meter: Meter) -> None:
    """No value has a nearer number under its block's scale, and no scale could be halved without saturating."""
    values = torch.randn(16, 4 * mxfp4.BLOCK, generator=generator)
    packed, scales = formats.mxfp4_quantize(values)
    found = mxfp4.dequantize(packed, scales).double()
    step = mxfp4.e8m0(scales).repeat_interleave(mxfp4.BLOCK, -1).double()
    nearest = (values.double().unsqueeze(-1) - step.unsqueeze(-1) * mxfp4.E2M1.double()).abs().amin(dim=-1)
    meter.compared(found.nbytes)
    # The specification lets the block's maximum saturate by less than a third (from below 8 to 6).
    far = ((values.double() - found).abs() > nearest).nonzero()
    wasteful = blocks_of(values.abs() / step.float(), mxfp4.BLOCK).amax(dim=-1) < mxfp4.E2M1_MAX / 2
    if len(far):
        at = tuple(far[0].tolist())
        msg = (
            f"MXFP4 quantisation: {values[at].item():.6g} became {found[at].item():.6g} under scale "
            f"{step[at].item():g}, which has a nearer number; {len(far)} of {values.numel()} values are off"
        )
        raise AssertionError(msg)
    if bool(wasteful.any()):
        msg = f"MXFP4 quantisation: {int(wasteful.sum())} of {wasteful.numel()} scales are twice as large as need be"
        raise AssertionError(msg)


def _blocks(generator: torch.Generator, block: tuple[int, int]) -> torch.Tensor:
    """Scales of blocks, all different, none a power of two."""
    rows, columns = (-(-size // side) for size, side in zip(_SHAPE, block, strict=True))
    return torch.rand(rows, columns, generator=generator) + 0.5


def fp8_block_dequantize(formats: Formats, generator: torch.Generator, meter: Meter) -> None:
    """Each scale reaches exactly the values of its block, also where the last blocks are partial."""
    values = (torch.randn(_SHAPE, generator=generator) * 50).to(torch.float8_e4m3fn)
    scales = _blocks(generator, fp8.BLOCK)
    found = formats.fp8_block_dequantize(values, scales)
    _same("fp8 blocks to float32", found, fp8.dequantize_blocks(values, scales), meter)


def fp8_quantize(formats: Formats, generator: torch.Generator, meter: Meter) -> None:
    """The scale brings the largest number to the end of the range, and no value has a nearer fp8 number."""
    values = torch.randn(32, 64, generator=generator)
    found, scale = formats.fp8_quantize(values)
    largest, ends = float(found.float().abs().amax()), _ENDS.get(found.dtype, ())
    meter.compared(found.nbytes)
    if largest not in ends:
        wanted = " or ".join(f"{end:g}" for end in ends) or "an e4m3 dtype"
        msg = f"fp8 quantisation: the largest number became {largest:g} in {found.dtype}; expected {wanted}"
        raise AssertionError(msg)
    grid = torch.arange(256, dtype=torch.uint8).view(found.dtype).double()
    grid = grid[grid.isfinite()] * float(scale)
    nearest = (values.double().unsqueeze(-1) - grid).abs().amin(dim=-1)
    # The division by the scale was rounded to float32 before it was rounded to fp8: that moves a tie by this much.
    slack = values.double().abs() * 2.0**-22
    far = ((values.double() - found.double() * float(scale)).abs() > nearest + slack).nonzero()
    if len(far):
        at = tuple(far[0].tolist())
        msg = (
            f"fp8 quantisation: {values[at].item():.6g} became {found[at].item():g} times {float(scale):.6g}; "
            f"{len(far)} of {values.numel()} values have a nearer number"
        )
        raise AssertionError(msg)


def fp8_to_fnuz(formats: Formats, generator: torch.Generator, meter: Meter) -> None:
    """Every finite e4m3fn code keeps its value, minus zero becomes zero, and the scale doubles."""
    codes = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn)
    codes = codes[codes.float().isfinite()]
    scale = torch.rand(1, generator=generator) + 0.5
    found, new_scale = formats.fp8_to_fnuz(codes, scale)
    wanted, wanted_scale = fp8.fn_to_fnuz(codes, scale)
    _same("e4m3fn codes as e4m3fnuz", found.view(torch.uint8), wanted.view(torch.uint8), meter)
    _same("the scale for e4m3fnuz", new_scale, wanted_scale, meter)
    _same(
        "the values of e4m3fnuz", found.float() * new_scale, codes.float().abs() * codes.float().sign() * scale, meter
    )


def int8_block_dequantize(formats: Formats, generator: torch.Generator, meter: Meter) -> None:
    """Each scale reaches exactly the values of its block."""
    values = torch.randint(-127, 128, _SHAPE, generator=generator, dtype=torch.int8)
    scales = _blocks(generator, INT8_BLOCK)
    found = formats.int8_block_dequantize(values, scales)
    _same("int8 blocks to float32", found, fp8.dequantize_blocks(values, scales, INT8_BLOCK), meter)


CHECKS: Final[dict[str, Check]] = {
    check.__name__: check
    for check in (
        mxfp4_dequantize,
        mxfp4_quantize,
        fp8_block_dequantize,
        fp8_quantize,
        fp8_to_fnuz,
        int8_block_dequantize,
    )
}
