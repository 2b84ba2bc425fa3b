"""What the doubles of the JIT kernels share: template arguments, the host-side tensor checks, entry points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import torch

from harness.emulation.doubles.calls import CallLog
from harness.emulation.doubles.operands import Call, refuse
from harness.emulation.doubles.rows import Slots
from harness.emulation.memory import AddressSpace, Kind
from harness.errors import BadCall

INDEX_TYPES: Final = (torch.int64, torch.int32)


class CompileError(RuntimeError):
    """A JIT module does not compile: no toolchain, or a `static_assert` that its template arguments break."""


@dataclass(frozen=True, slots=True)
class Compilation:
    """One instantiation of a kernel template: its arguments as they stand in the C++ name, on one platform."""

    platform: str
    template: tuple[str, ...]
    memory: AddressSpace
    calls: CallLog
    name: str

    def number(self, position: int) -> int:
        """Return an integer template argument."""
        return int(self.template[position])

    def flag(self, position: int) -> bool:
        """Return a boolean template argument."""
        return self.template[position] == "true"

    def static_assert(self, *, holds: bool, what: str) -> None:
        """Fail to compile unless `holds`."""
        if not holds:
            msg = f"{self.name}<{', '.join(self.template)}> on {self.platform}: static assertion failed: {what}"
            raise CompileError(msg)

    def start(self) -> Call:
        """Log a call and return the context of its checks."""
        self.calls.append(self.name)
        return Call(self.name, self.memory)


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """A C++ function of a kernel: what must hold to compile it, and its double."""

    name: str
    check: Callable[[Compilation], None]
    run: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class RowView:
    """A cache operand as rows: `address`, distance and width in bytes."""

    tensor: torch.Tensor
    stride: int
    width: int


def row_view(call: Call, value: Any, what: str) -> RowView:
    """Check a cache operand: two dimensions, the last one contiguous; it may lie anywhere that the device can reach."""
    tensor = call.tensor(value, what)
    if tensor.dim() != 2 or (tensor.shape[1] != 1 and tensor.stride(1) != 1):  # noqa: PLR2004
        found = f"{what} has shape {tuple(tensor.shape)} and strides {tensor.stride()}"
        refuse(BadCall, call.name, found, "(tokens, row) with contiguous rows", "view the buffer as rows first")
    size = tensor.element_size()
    return RowView(tensor, tensor.stride(0) * size, tensor.shape[1] * size)


def same_dtype(call: Call, **tensors: torch.Tensor) -> None:
    """Refuse operands of different dtypes."""
    dtypes = {name: tensor.dtype for name, tensor in tensors.items()}
    if len(set(dtypes.values())) > 1:
        found = ", ".join(f"{name} is {dtype}" for name, dtype in dtypes.items())
        refuse(BadCall, call.name, found, "one dtype", "view both buffers as the pool's store dtype")


def block(call: Call, value: Any, what: str, place: Kind | None, *shape: int | None) -> torch.Tensor:
    """Check a contiguous operand (on one side, if `place` is given) whose shape is given, None for a free extent."""
    tensor = call.tensor(value, what)
    fits = tensor.dim() == len(shape) and all(
        want in {None, have} for want, have in zip(shape, tensor.shape, strict=True)
    )
    if not fits or not tensor.is_contiguous():
        wanted = ", ".join("any" if extent is None else str(extent) for extent in shape)
        found = f"{what} has shape {tuple(tensor.shape)} and strides {tensor.stride()}"
        refuse(BadCall, call.name, found, f"a contiguous ({wanted})", "check layers, row width and token counts")
    call.lies(tensor, what, place)
    return tensor


def index_pair(call: Call, source: Any, destination: Any, names: tuple[str, str]) -> tuple[Slots, Slots]:
    """Check two index tensors on the device: equal length, both int32 or both int64."""
    one = call.indices(source, names[0], dtypes=INDEX_TYPES, place="device")
    other = call.indices(destination, names[1], dtypes=INDEX_TYPES, place="device")
    if source.dtype != destination.dtype:
        found = f"{names[0]} is {source.dtype} and {names[1]} is {destination.dtype}"
        refuse(BadCall, call.name, found, "one index dtype", "convert one of them")
    call.pair(one, other)
    return one, other


def tables(call: Call, **values: Any) -> dict[str, list[int]]:
    """Check pointer tables, which must all have as many layers."""
    found = {name: call.table(value, name) for name, value in values.items()}
    lengths = {name: len(table) for name, table in found.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} has {length} pointers" for name, length in lengths.items())
        refuse(BadCall, call.name, told, "one pointer a layer in each", "build the tables from the same layers")
    return found
