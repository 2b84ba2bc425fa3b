"""Every error that poolparity itself raises, by what it means for a run.

Command-line errors carry an exit code (docs/contract.md, "The command line"). Errors that a case may raise say which
outcome the case gets: `CannotAsk` is `error`, `Unsupported` is `unsupported`, `KernelRefused` is the SUT's `fail`.
"""

from __future__ import annotations


class PoolparityError(Exception):
    """Base of the errors that end a command with one clear message."""

    exit_code = 3


class UsageError(PoolparityError):
    """The command line, a SUT string or a data file is wrong (exit code 2)."""

    exit_code = 2


class InfrastructureError(PoolparityError):
    """The harness could not do its work: no network, no space, no device (exit code 3)."""

    exit_code = 3


class CannotAsk(PoolparityError):  # noqa: N818 - reads as the sentence it stands for
    """The harness or the driver could not put the question to the SUT: the case's outcome is `error`."""


class NoDriver(CannotAsk):
    """No driver knows the pool API that this SUT has."""


class StubCalled(CannotAsk):
    """A stand-in for a package that this machine lacks was called for a value, which it must not invent."""


class EmulationGap(CannotAsk):
    """The SUT asked the emulated platform for something that it does not model."""


class Unsupported(Exception):  # noqa: N818 - an outcome, not an error
    """The combination must not work, and it was refused clearly: the case's outcome is `unsupported`."""


class KernelRefused(RuntimeError):  # noqa: N818 - docs/contract.md speaks of refusals
    """A kernel double refused a call, as the real kernel would (or should, where it would corrupt memory)."""


class OutOfRegion(KernelRefused):
    """An access left the memory region that its base pointer belongs to."""


class BadCall(KernelRefused):
    """An argument breaks a precondition of the kernel."""


class Misaligned(BadCall):
    """An index or a size is not a multiple of what the kernel needs."""


class WrongIndexDevice(BadCall):
    """Indices lie on another device than the kernel reads them from."""


class WrongDevice(BadCall):
    """A buffer lies on another device than the kernel reads or writes."""
