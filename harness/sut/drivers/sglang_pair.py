"""SGLang's MLA pools as a pool pair: the driver port on top of the SUT's own objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from harness.sut.drivers import placement, storage
from harness.sut.drivers.device_planes import DevicePlane, latent_planes, rows_of, split_planes
from harness.sut.drivers.port import PoolRequest

if TYPE_CHECKING:
    from harness.sut.drivers.sglang_driver import SGLangDriver

_SPLIT_BUFFERS = {"k": "k_buffer", "v": "v_buffer", "index_k": "index_k_buffer", "scale": "index_k_scale_buffer"}


class SGLangPair:
    """A target pool, its drafts and the host pool that mirrors them. `host` is the SUT's own host pool."""

    def __init__(
        self, driver: SGLangDriver, request: PoolRequest, target: Any, drafts: Sequence[Any], host: Any
    ) -> None:
        self.geometry = request.geometry
        self.layout = request.layout
        self.io_backend = request.io_backend
        self.target = target
        self.drafts = tuple(drafts)
        self.host = host
        self._device = driver.device
        self._emulation = driver.emulation
        self._planes = {(p.component, p.layer): p for p in self._device_planes(driver.platform)}
        self._buffers = self._host_buffers()
        if self._emulation is not None:
            self._register()
            self._emulation.reset_calls()

    def _device_planes(self, platform: str) -> Iterator[DevicePlane]:
        geometry = self.geometry
        indexed = tuple(range(geometry.layers)) if geometry.indexer_layers is None else geometry.indexer_layers
        if platform == "ascend":
            yield from split_planes(self.target, 0, indexed)
            for i, draft in enumerate(self.drafts):
                yield from split_planes(draft, geometry.layers + i, ())
            return
        yield from latent_planes(self.target, 0)
        for i, draft in enumerate(self.drafts):
            yield from latent_planes(draft, geometry.layers + i)

    def _host_buffers(self) -> dict[str, torch.Tensor]:
        """Component -> the SUT's host tensor. The split layout has one for each component, every other layout one."""
        if self.layout == "page_first_kv_split":
            found = {c: getattr(self.host, name, None) for c, name in _SPLIT_BUFFERS.items()}
            return {c: tensor for c, tensor in found.items() if tensor is not None}
        return {"latent": self.host.kv_buffer}

    def _register(self) -> None:
        memory = self._emulation.memory  # type: ignore[union-attr]  # only called with an emulation
        for plane in self._planes.values():
            label = f"device {plane.component} layer {plane.layer}"
            memory.register(plane.tensor, label=label, kind="device", layer=plane.layer)
        for component, tensor in self._buffers.items():
            if self.layout == "layer_first":
                for layer, part in enumerate(tensor):
                    memory.register(part, label=f"host {component} layer {layer}", kind="host", layer=layer)
            else:
                memory.register(tensor, label=f"host {component}", kind="host")
        staging = getattr(self.host, "staging_buffer", None)
        if staging is not None:
            memory.register(staging, label="staging", kind="device")

    @property
    def device_slots(self) -> int:
        """Slots of the device pool, its padding page included."""
        return rows_of(next(iter(self._planes.values())).tensor).shape[0]

    @property
    def host_slots(self) -> int:
        """Slots of the host pool."""
        return int(self.host.size)

    def device_components(self) -> Sequence[tuple[str, int]]:
        """(component, layer) of every device plane."""
        return list(self._planes)

    def read_device(self, component: str, layer: int) -> torch.Tensor:
        """Copy of one device plane: uint8 (device_slots, row_bytes)."""
        return rows_of(self._planes[component, layer].tensor).to("cpu", copy=True)

    def write_device(self, component: str, layer: int, rows: torch.Tensor) -> None:
        """Overwrite one device plane."""
        rows_of(self._planes[component, layer].tensor).copy_(rows)

    def host_buffer(self, component: str) -> torch.Tensor:
        """Flat uint8 view of the host buffer that holds a component."""
        return self._buffers[component].view(-1).view(torch.uint8)

    def host_components(self) -> Sequence[str]:
        """Names of the host buffers."""
        return list(self._buffers)

    def backup(self, host_indices: torch.Tensor, device_indices: torch.Tensor) -> None:
        """Device to host, all layers and drafts."""
        staged = self.layout == "page_first" and bool(getattr(self.host, "can_use_write_back_jit", False))
        host, device = self._place(host_indices, device_indices, staged=staged)
        self.host.backup_from_device_all_layer(self.target, host, device, self.io_backend)

    def load(self, host_indices: torch.Tensor, device_indices: torch.Tensor, layer: int) -> None:
        """Host to device for one layer or draft, as the controller's load loop does."""
        host, device = self._place(host_indices, device_indices)
        draft = layer - self.geometry.layers
        if draft < 0:
            self.host.load_to_device_per_layer(self.target, host, device, layer, self.io_backend)
        else:
            pool = self.drafts[draft]
            self.host.load_to_device_per_layer(pool, host, device, layer, self.io_backend, is_draft=True)

    def _place(self, host: torch.Tensor, device: torch.Tensor, *, staged: bool = False) -> placement.Pair:
        return placement.place(self.io_backend, self.layout, host, device, on=self._device, staged=staged)

    def call_sites(self) -> Sequence[str]:
        """Lines of the SUT that called a transfer kernel since the pair was built; none in native mode."""
        return self._emulation.call_sites() if self._emulation is not None else ()

    def alloc(self, need: int) -> torch.Tensor | None:
        """Allocate host slots; None when the pool is exhausted."""
        slots: torch.Tensor | None = self.host.alloc(need)
        return slots

    def free(self, indices: torch.Tensor) -> int:
        """Give host slots back; returns their count."""
        return int(self.host.free(indices))

    def clear(self) -> None:
        """Forget every allocation."""
        self.host.clear()

    def available_size(self) -> int:
        """Free host slots."""
        return int(self.host.available_size())

    def size_per_token(self) -> int:
        """Bytes of one host token over all layers and components, as the pool itself says."""
        return int(self.host.get_size_per_token())

    def get_data_page(self, slot: int) -> torch.Tensor:
        """Flat uint8 copy of the storage page that starts at a host slot."""
        return storage.flat_bytes(self.host.get_data_page(slot, flat=True))

    def set_from_flat_data_page(self, slot: int, page: torch.Tensor) -> None:
        """Write a flat uint8 storage page at a host slot."""
        self.host.set_from_flat_data_page(slot, page.view(self.host.dtype))

    def get_dummy_flat_data_page(self) -> torch.Tensor:
        """Flat uint8 zero page of the pool's storage page size."""
        return storage.flat_bytes(self.host.get_dummy_flat_data_page())

    def get_page_buffer_meta(self, host_indices: torch.Tensor) -> list[tuple[str, int, int]]:
        """(component, byte offset in its buffer, bytes) of each zero-copy piece, in the pool's order."""
        pointers, sizes = self.host.get_page_buffer_meta(host_indices)
        return [(*storage.locate(self._buffers, p, n), n) for p, n in zip(pointers, sizes, strict=True)]

    def get_contiguous_buf_infos(self) -> list[tuple[str, int, int, int]]:
        """(component, byte offset in its buffer, bytes, item bytes) of each registered buffer."""
        rows = zip(*self.host.get_contiguous_buf_infos(), strict=True)
        return [(*storage.locate(self._buffers, pointer, nbytes), nbytes, item) for pointer, nbytes, item in rows]

    def is_stride_page_aligned(self, alignment: int = 4096) -> bool:
        """Whether each page starts on a multiple of `alignment` bytes."""
        return bool(self.host.is_stride_page_aligned(alignment))

    def close(self) -> None:
        """Release the host buffers and what the emulation registered."""
        if self._emulation is not None:
            self._emulation.memory.clear()
        self._planes, self._buffers = {}, {}
