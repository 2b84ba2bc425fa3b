"""Conversions of weight formats behind one interface: SGLang's Python functions, or the reference's."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Protocol

import torch

from reference.moe.formats import fp8, mxfp4

Pair = tuple[torch.Tensor, torch.Tensor]
INT8_BLOCK: Final = (128, 128)


class Formats(Protocol):
    """The conversions that a SUT has in Python. Tensors in and out lie in CPU memory."""

    def mxfp4_dequantize(self, packed: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        """OCP bytes (n, k / 2) and E8M0 scales (n, k / 32) to float32 (n, k)."""

    def mxfp4_quantize(self, values: torch.Tensor) -> Pair:
        """Float32 (n, k) to OCP bytes and E8M0 scales."""

    def fp8_block_dequantize(self, values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        """e4m3fn (n, k) with scales of 128 x 128 blocks to float32."""

    def fp8_quantize(self, values: torch.Tensor) -> Pair:
        """Float32 (n, k) to the platform's fp8 and one scale, by which the fp8 values are multiplied."""

    def fp8_to_fnuz(self, values: torch.Tensor, scale: torch.Tensor) -> Pair:
        """e4m3fn with a scale to e4m3fnuz with its scale."""

    def int8_block_dequantize(self, values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        """int8 (n, k) with scales of 128 x 128 blocks to float32."""


class ReferenceFormats:
    """The reference's conversions."""

    def mxfp4_dequantize(self, packed: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        """By way of the GGUF layout, so that the two layouts are held against each other."""
        return mxfp4.dequantize(*mxfp4.from_gguf(mxfp4.to_gguf(packed, scales)))

    def mxfp4_quantize(self, values: torch.Tensor) -> Pair:
        """See reference.moe.formats.mxfp4."""
        return mxfp4.quantize(values)

    def fp8_block_dequantize(self, values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        """See reference.moe.formats.fp8."""
        return fp8.dequantize_blocks(values, scales)

    def fp8_quantize(self, values: torch.Tensor) -> Pair:
        """See reference.moe.formats.fp8."""
        return fp8.quantize(values, "e4m3fn")

    def fp8_to_fnuz(self, values: torch.Tensor, scale: torch.Tensor) -> Pair:
        """See reference.moe.formats.fp8."""
        return fp8.fn_to_fnuz(values, scale)

    def int8_block_dequantize(self, values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        """The block form of int8 spreads its scales as fp8's does."""
        return fp8.dequantize_blocks(values, scales, INT8_BLOCK)


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"sglang.srt.layers.quantization.{name}")


class SglangFormats:
    """SGLang's conversions, on the cell's device."""

    def __init__(self, device: str) -> None:
        self._device = device

    def mxfp4_dequantize(self, packed: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        """MXFP4QuantizeUtil.dequantize."""
        convert = _module("mxfp4_tensor").MXFP4QuantizeUtil.dequantize
        return self._back(convert(self._to(packed), torch.float32, self._to(scales), [mxfp4.BLOCK]))

    def mxfp4_quantize(self, values: torch.Tensor) -> Pair:
        """MXFP4QuantizeUtil.quantize, which leaves it to a subclass to keep what it makes."""
        base: Any = _module("mxfp4_tensor").MXFP4QuantizeUtil

        class Kept(base):  # type: ignore[misc]  # the base is the SUT's
            def __init__(self, _shape: object, _dtype: object, packed: torch.Tensor) -> None:
                self.packed = packed

        kept, scales = Kept.quantize(self._to(values), mxfp4.BLOCK)
        return self._back(kept.packed), self._back(scales).reshape(*values.shape[:-1], -1)

    def fp8_block_dequantize(self, values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        """fp8_utils.block_quant_dequant."""
        convert = _module("fp8_utils").block_quant_dequant
        return self._back(convert(self._to(values), self._to(scales), list(fp8.BLOCK), torch.float32))

    def fp8_quantize(self, values: torch.Tensor) -> Pair:
        """fp8_utils.input_to_float8, with the platform's default dtype."""
        quantized, scale = _module("fp8_utils").input_to_float8(self._to(values))
        return self._back(quantized), self._back(scale)

    def fp8_to_fnuz(self, values: torch.Tensor, scale: torch.Tensor) -> Pair:
        """fp8_utils.normalize_e4m3fn_to_e4m3fnuz."""
        weight, new_scale, _ = _module("fp8_utils").normalize_e4m3fn_to_e4m3fnuz(self._to(values), self._to(scale))
        return self._back(weight), self._back(new_scale)

    def int8_block_dequantize(self, values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        """int8_utils.block_dequant."""
        convert = _module("int8_utils").block_dequant
        return self._back(convert(self._to(values), self._to(scales), list(INT8_BLOCK)))

    def _to(self, tensor: torch.Tensor) -> torch.Tensor:
        """A copy on the device, because some conversions write into their arguments."""
        return tensor.to(self._device, copy=True)

    @staticmethod
    def _back(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().cpu()


def formats_of(root: Path | None, device: str) -> Formats:
    """Return the conversions of the SUT at `root` (None: the reference)."""
    return ReferenceFormats() if root is None else SglangFormats(device)
