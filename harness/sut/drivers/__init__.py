"""Drivers: one thin layer for each generation of SGLang's pool API, and one for the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.sut.drivers.port import Driver
from harness.sut.spec import SutTree

if TYPE_CHECKING:
    from harness.emulation import Emulation


def driver_for(sut: SutTree, platform: str, emulation: Emulation | None) -> Driver:
    """Return the driver for a SUT in this process; raises NoDriver with the signature found when none knows its API."""
    if sut.is_reference:
        from harness.sut.drivers.reference import ReferenceDriver  # noqa: PLC0415

        return ReferenceDriver(platform)
    from harness.sut.drivers.generations import choose  # noqa: PLC0415 - imports the SUT

    return choose(platform, emulation)
