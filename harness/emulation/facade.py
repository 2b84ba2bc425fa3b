"""What the facades share: replacing attributes of torch, synchronous streams and events, a device nobody may touch.

A facade makes `torch` answer as it would on the platform. It answers questions (is there a device, which one); it does
not compute: tensors of an emulated platform live in CPU memory (or on the `npu` device of npu_device), and whatever
would start the real accelerator is refused, also on a machine that has one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace, TracebackType
from typing import Any, NoReturn, Self

import torch

from harness.errors import EmulationGap


@dataclass(frozen=True, slots=True)
class Facade:
    """What installing a facade gives.

    `device`: the torch device that pools are built on. `answers`: names with a true value in modules that otherwise are
    stand-ins. `note`: what the report should say of the device, or nothing.
    """

    device: str = "cpu"
    answers: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    note: str = ""


def refuser(what: str) -> Callable[..., NoReturn]:
    """Return a function that refuses to do `what`, for entry points that would reach real hardware."""

    def refused(*_args: object, **_keywords: object) -> NoReturn:
        msg = f"{what} was called under emulation; tensors live in CPU memory there; run this case on the hardware"
        raise EmulationGap(msg)

    refused.__name__ = refused.__qualname__ = what.rpartition(".")[2]
    return refused


def answer(value: Any) -> Callable[..., Any]:
    """Return a function that answers `value` whatever device it is asked about."""

    def answered(*_args: object, **_keywords: object) -> Any:
        return value

    return answered


def put(module: Any, **attributes: Any) -> None:
    """Set attributes of a torch module, for good: a cell is one process."""
    for name, value in attributes.items():
        setattr(module, name, value)


class Event:
    """An event of a synchronous stream: it has happened as soon as it is recorded."""

    def __init__(self, *_args: object, **_keywords: object) -> None:
        self.recorded = False

    def record(self, stream: Stream | None = None) -> None:
        """Mark the event."""
        self.recorded = True

    def query(self) -> bool:
        """Tell whether the work before the event is done: always, here."""
        return True

    def wait(self, stream: Stream | None = None) -> None:
        """Wait for nothing: there is no queue."""

    def synchronize(self) -> None:
        """Wait for nothing: there is no queue."""

    def elapsed_time(self, end_event: Event) -> float:
        """Refuse: emulation has no device clock."""
        refuser("Event.elapsed_time")()


class Stream:
    """A stream that runs everything at once, in the calling thread."""

    device: torch.device = torch.device("cpu")
    device_index: int = 0

    def __init__(self, *_args: object, **_keywords: object) -> None:
        """Accept a device and a priority, which mean nothing here."""

    def synchronize(self) -> None:
        """Wait for nothing: there is no queue."""

    def wait_stream(self, stream: Stream) -> None:
        """Wait for nothing: there is no queue."""

    def wait_event(self, event: Event) -> None:
        """Wait for nothing: there is no queue."""

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event on this stream."""
        event = event if event is not None else Event()
        event.record(self)
        return event

    def query(self) -> bool:
        """Tell whether all work is done: always, here."""
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the stream."""


@dataclass
class HostRegistrations:
    """The recording stand-in for the runtime's host memory registration."""

    ranges: dict[int, int] = field(default_factory=dict)
    """Start address -> bytes of what is registered now."""

    def register(self, pointer: int, size: int, flags: int = 0) -> int:
        """cudaHostRegister: 0 for success, 712 (cudaErrorHostMemoryAlreadyRegistered) for a start known already."""
        if int(pointer) in self.ranges:
            return 712
        self.ranges[int(pointer)] = int(size)
        return 0

    def unregister(self, pointer: int) -> int:
        """cudaHostUnregister: 0 for success, 713 (cudaErrorHostMemoryNotRegistered) for an unknown start."""
        return 0 if self.ranges.pop(int(pointer), None) is not None else 713

    def runtime(self) -> SimpleNamespace:
        """What `torch.cuda.cudart()` returns."""
        return SimpleNamespace(
            cudaHostRegister=self.register,
            cudaHostUnregister=self.unregister,
            cudaGetErrorString=lambda code: f"cudaError {int(code)}",
        )


def streams() -> dict[str, Any]:
    """Attributes for a device module: its streams and events, all synchronous."""
    stream = Stream()
    return {
        "Stream": Stream,
        "Event": Event,
        "current_stream": answer(stream),
        "default_stream": answer(stream),
        "stream": lambda chosen: chosen if chosen is not None else stream,
        "set_stream": answer(None),
        "synchronize": answer(None),
    }


def no_accelerators() -> None:
    """Make torch answer as a build without any accelerator; a facade then adds its own platform."""
    torch.version.cuda = None
    torch.version.hip = None
    put(torch.cuda, is_available=answer(value=False), device_count=answer(0), _lazy_init=refuser("torch.cuda init"))
    put(torch.xpu, is_available=answer(value=False), device_count=answer(0), _lazy_init=refuser("torch.xpu init"))
    put(torch.backends.mps, is_available=answer(value=False))
    put(torch.mps, is_available=answer(value=False), device_count=answer(0))
