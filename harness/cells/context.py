"""A cell from the inside: one SUT on one platform in this process, emulated or native."""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any

from harness import platforms
from harness.cells.fresh import Answer, Zygote
from harness.errors import InfrastructureError
from harness.sut.spec import SutTree

if TYPE_CHECKING:
    from harness.emulation import Emulation
    from harness.sut.drivers.port import Driver


class Cell:
    """What suites know of where they run. `emulation` is None for the reference and in native mode."""

    def __init__(self, sut: SutTree, platform: str, mode: str, seed: int, *, fresh_limit_s: float = 45.0) -> None:
        self.sut = sut
        self.platform = platform
        self.mode = choose_mode(platform, mode)
        self.seed = seed
        self.emulation: Emulation | None = None
        self.device = "cpu"
        self._driver: Driver | None = None
        self._no_driver: tuple[BaseException, TracebackType | None] | None = None
        self._fresh_limit_s = fresh_limit_s
        self._zygote: Zygote | None = None

    def prepare(self) -> None:
        """Make this process the cell: emulate the platform, and keep a pristine fork for `fresh`."""
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        if self.sut.root is not None:
            if self.mode == "emulated":
                from harness import emulation  # noqa: PLC0415 - loads torch

                self.emulation = emulation.install(self.platform, self.sut.root)
                self.device = self.emulation.device
            else:
                self.device = platforms.get(self.platform).torch_device
                sys.path.insert(0, str(self.sut.root))
        self._zygote = Zygote(self.sut.root, self._fresh_limit_s)

    @property
    def driver(self) -> Driver:
        """The driver of this SUT's pool API; raises NoDriver, or what importing the SUT raises.

        It raises the same each time: a second import of a half-imported SUT takes as long and says something else.
        """
        if self._no_driver is not None:
            error, trace = self._no_driver
            raise error.with_traceback(trace)
        if self._driver is None:
            from harness.sut.drivers import driver_for  # noqa: PLC0415 - loads torch

            try:
                self._driver = driver_for(self.sut, self.platform, self.emulation)
            except (Exception, SystemExit) as error:
                self._no_driver = error, error.__traceback__
                raise
        return self._driver

    def stubbed(self) -> list[str]:
        """Top-level packages that a stand-in served, sorted."""
        return self.emulation.stubs.names() if self.emulation is not None else []

    def prefetch_fresh(self, function: str, *args: Any, **kwargs: Any) -> None:
        """Start `fresh` ahead of time, on another core."""
        self._zygote_or_raise().start(function, args, kwargs)

    def fresh(self, function: str, *args: Any, **kwargs: Any) -> Any:
        """Call "module:function" in a process in which the SUT was never imported; its JSON-able result.

        Raises FreshError with what it raised there, or with how the process died.
        """
        answer: Answer = self._zygote_or_raise().result(function, args, kwargs)
        return answer.unwrap()

    def _zygote_or_raise(self) -> Zygote:
        if self._zygote is None:
            msg = "the cell is not prepared; call prepare() first"
            raise InfrastructureError(msg)
        return self._zygote


def choose_mode(platform: str, mode: str) -> str:
    """Return `native` or `emulated` for a wish; InfrastructureError when native is wished for and is not here."""
    if mode == "emulated":
        return mode
    found = platforms.get(platform).detect_native()
    if found.present:
        return "native"
    if mode == "native":
        msg = f"platform {platform} is not here: {found.reason}; expected its hardware and kernels; use --mode emulated"
        raise InfrastructureError(msg)
    return "emulated"
