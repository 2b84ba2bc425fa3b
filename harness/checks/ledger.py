"""What the buffers of a pool pair must hold, kept beside the real ones: a plain model of slot -> bytes.

The ledger fills the real buffers with rows that carry their origin, applies the meaning of each transfer to its own
copy, and compares every byte of every buffer: named rows must have arrived, all others must not have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import torch

from harness.checks.explain import Difference, Mismatch, explain
from harness.checks.meter import Meter
from harness.checks.rows import U8, encode
from harness.sut.drivers.port import PoolPair
from reference.layouts import HostLayout, host_layout

Plane = tuple[str, int]
_Read = Callable[[str, int], U8]


class Ledger:
    """Expected contents of one pool pair: planes (component, layer) of uint8 (slots, row_bytes) on either side."""

    def __init__(self, pair: PoolPair, meter: Meter) -> None:
        self.pair = pair
        self.meter = meter
        self.layout: HostLayout = host_layout(pair.layout, pair.geometry)
        self.device: dict[Plane, U8] = {}
        self.host: dict[Plane, U8] = {}
        self.epochs: dict[int, str] = {}
        self._check_host_buffers()
        self._check_device_planes()
        self.fill_device("device")
        self.fill_host("host before the transfer")

    def _check_host_buffers(self) -> None:
        expected = {c.name: self.layout.nbytes(c.name) for c in self.layout.components}
        found = {name: self.pair.host_buffer(name).numel() for name in self.pair.host_components()}
        if found != expected:
            msg = f"host buffers of layout {self.pair.layout} hold {found} bytes; expected {expected}"
            raise AssertionError(msg)

    def _check_device_planes(self) -> None:
        expected = {
            (c.name, layer): (self.pair.geometry.device_slots, c.row_bytes)
            for c in self.layout.components
            for layer in c.layers
        }
        found = {plane: tuple(self.pair.read_device(*plane).shape) for plane in self.pair.device_components()}
        for plane in sorted(expected.keys() | found.keys()):
            if found.get(plane) != expected.get(plane):
                msg = (
                    f"device plane {plane[0]}, layer {plane[1]} is {found.get(plane)} (slots, row bytes); "
                    f"expected {expected.get(plane)} for this geometry"
                )
                raise AssertionError(msg)

    def _epoch(self, label: str) -> int:
        number = len(self.epochs) + 1
        self.epochs[number] = label
        return number

    def fill_device(self, label: str) -> None:
        """Write fresh rows into every device plane; `label` is how messages call them."""
        epoch = self._epoch(label)
        for component, layer in self.pair.device_components():
            width = self._width(component)
            rows = encode(epoch, component, layer, self.pair.device_slots, width, self.pair.geometry.dtype)
            self.pair.write_device(component, layer, torch.from_numpy(rows.copy()))
            self.device[component, layer] = rows.copy()

    def fill_host(self, label: str) -> None:
        """Write fresh rows into every host plane."""
        epoch = self._epoch(label)
        for component, layer in self.host_planes():
            rows = encode(
                epoch, component, layer, self.pair.host_slots, self._width(component), self.pair.geometry.dtype
            )
            self._host_rows(component, layer).copy_(torch.from_numpy(rows.copy()).view(self._paged(component)))
            self.host[component, layer] = rows.copy()

    def host_planes(self) -> Iterator[Plane]:
        """(component, layer) of every host plane."""
        for component in self.layout.components:
            for layer in component.layers:
                yield component.name, layer

    def _width(self, component: str) -> int:
        return next(c.row_bytes for c in self.layout.components if c.name == component)

    def _paged(self, component: str) -> tuple[int, int, int]:
        page = self.pair.geometry.page_size
        return self.pair.host_slots // page, page, self._width(component)

    def _host_rows(self, component: str, layer: int) -> torch.Tensor:
        return self.layout.rows(self.pair.host_buffer(component), component, layer)

    def backup(self, host_indices: torch.Tensor, device_indices: torch.Tensor) -> None:
        """Record what a backup of these slots must do: every plane, device to host."""
        for plane in self.host:
            self.host[plane][host_indices.numpy()] = self.device[plane][device_indices.numpy()]

    def load(
        self, host_indices: torch.Tensor, device_indices: torch.Tensor, layers: Iterable[int] | None = None
    ) -> None:
        """Record what a load of these slots must do for some layers (default: all), host to device."""
        wanted = None if layers is None else set(layers)
        for component, layer in self.host:
            if wanted is None or layer in wanted:
                rows = self.host[component, layer][host_indices.numpy()]
                self.device[component, layer][device_indices.numpy()] = rows

    def check_host(self, what: str) -> None:
        """Compare every host byte with the model; raises AssertionError that says what happened."""
        self._raise(what, self._differences("host", self.host, self._read_host))

    def check_device(self, what: str) -> None:
        """Compare every device byte with the model; raises AssertionError that says what happened."""
        self._raise(what, self._differences("device", self.device, self._read_device))

    def check(self, what: str) -> None:
        """Compare both sides."""
        self.check_host(what)
        self.check_device(what)

    def check_layer(self, layer: int, what: str) -> None:
        """Compare the device planes of one layer; raises AssertionError that says what happened."""
        model = {plane: rows for plane, rows in self.device.items() if plane[1] == layer}
        self._raise(what, self._differences("device", model, self._read_device))

    def _read_host(self, component: str, layer: int) -> U8:
        found: U8 = self._host_rows(component, layer).reshape(-1, self._width(component)).numpy()
        return found

    def _read_device(self, component: str, layer: int) -> U8:
        found: U8 = self.pair.read_device(component, layer).numpy()
        return found

    def _differences(self, side: str, model: dict[Plane, U8], read: _Read) -> list[Difference]:
        differences = []
        for (component, layer), expected in model.items():
            found = read(component, layer)
            if found.shape != expected.shape:
                msg = f"{side} {component}, layer {layer}: (slots, row bytes) {found.shape}; expected {expected.shape}"
                raise AssertionError(msg)
            self.meter.compared(expected.nbytes)
            wrong = np.flatnonzero((found != expected).any(axis=1))
            if len(wrong):
                differences.append(Difference(side, component, layer, wrong, found[wrong], expected[wrong]))
        return differences

    def _raise(self, what: str, differences: list[Difference]) -> None:
        if differences:
            raise Mismatch(explain(what, differences, self.epochs), self.pair.call_sites())
