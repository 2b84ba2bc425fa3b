"""Triton's idea of the current device. Kernels are never launched; module-level code asks which backend this is.

Real triton looks for a driver of the real machine when it is asked, finds none or the wrong one, and fails; so the
driver is set before anybody asks. A stand-in for triton gets the same driver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, NoReturn

import torch

from harness.emulation.facade import refuser


class EmulatedDriver:
    """Answers what the active driver of the platform would; refuses to load or launch anything."""

    def __init__(self, device: Mapping[str, Any], torch_device: str) -> None:
        self._device = device
        self._torch_device = torch_device
        self.utils = SimpleNamespace(get_device_properties=self.get_device_properties)

    def get_current_target(self) -> Any:
        """Return the target: `backend`, `arch` and `warp_size`, as triton's GPUTarget has them."""
        return SimpleNamespace(
            backend=self._device["triton_backend"],
            arch=self._device["triton_arch"],
            warp_size=self._device.get("warp_size", 32),
        )

    def get_device_properties(self, index: int = 0) -> dict[str, int]:
        """Return multiprocessors, and bytes of shared memory of one."""
        return {
            "multiprocessor_count": int(self._device["multi_processor_count"]),
            "max_shared_mem": int(self._device["max_shared_mem"]),
        }

    def get_active_torch_device(self) -> torch.device:
        """Return the device that tensors are made on."""
        return torch.device(self._torch_device)

    def get_current_device(self) -> int:
        """Return the index of the only device."""
        return 0

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        if name.startswith("__"):
            raise AttributeError(name)
        return refuser(f"triton.runtime.driver.active.{name}")


class NoDriver:
    """The driver of a platform without one: every question fails, as triton's own search does there."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        msg = "0 active drivers ([]). There should only be one."
        raise RuntimeError(msg)


def driver_for(device: Mapping[str, Any], torch_device: str) -> EmulatedDriver | NoDriver:
    """Return the driver of the platform whose `[device]` table this is."""
    return EmulatedDriver(device, torch_device) if "triton_backend" in device else NoDriver()


def set_driver(driver: EmulatedDriver | NoDriver) -> None:
    """Make `driver` the active one of the real triton, which this imports."""
    from triton.runtime import driver as config  # noqa: PLC0415 - only where triton is installed

    config.set_active(driver)
