"""A copy of everything a pool pair holds, to prove that a refused call wrote nothing."""

from __future__ import annotations

import torch

from harness.checks.meter import Meter
from harness.sut.drivers.port import PoolPair


class Snapshot:
    """Every device plane and host buffer of a pair, as it is now."""

    def __init__(self, pair: PoolPair) -> None:
        self.pair = pair
        self.before = self._read()

    def _read(self) -> dict[str, torch.Tensor]:
        planes = {
            f"device {c} layer {layer}": self.pair.read_device(c, layer) for c, layer in self.pair.device_components()
        }
        return planes | {f"host {c}": self.pair.host_buffer(c).clone() for c in self.pair.host_components()}

    def check_unchanged(self, meter: Meter, what: str) -> None:
        """Compare with the pair as it is now; raises AssertionError that names what was written."""
        for name, now in self._read().items():
            meter.compared(now.numel())
            changed = int((now != self.before[name]).sum())
            if changed:
                msg = f"{what}: {changed} bytes of {name} were written; expected none"
                raise AssertionError(msg)
