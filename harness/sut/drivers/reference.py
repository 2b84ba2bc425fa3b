"""The reference as a SUT: it speaks the driver port like any release, so every suite can be asked of it."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from harness.errors import Unsupported
from harness.sut.drivers.port import PoolPair, PoolRequest
from reference.device_pool import DevicePool, MLATokenToKVPool, NPUMLATokenToKVPool
from reference.host_pool import MLATokenToKVPoolHost


class ReferenceDriver:
    """Builds reference pools as one platform has them: Ascend's are split, all others keep latent rows."""

    name = "reference"

    def __init__(self, platform: str) -> None:
        self.platform = platform

    def build(self, request: PoolRequest) -> PoolPair:
        """Build the device pool, its drafts and the host pool. Raises ValueError as the reference does."""
        if request.pool != "mla":
            msg = f"the reference has no {request.pool} pool yet; it has mla"
            raise Unsupported(msg)
        return ReferencePair(request, self.platform)


class ReferencePair:
    """A reference device pool with its drafts and host pool."""

    def __init__(self, request: PoolRequest, platform: str) -> None:
        self.geometry = request.geometry
        self.layout = request.layout
        self.io_backend = request.io_backend
        kind: type[DevicePool] = NPUMLATokenToKVPool if platform == "ascend" else MLATokenToKVPool
        self._target: DevicePool = kind(self.geometry)
        self._drafts: list[DevicePool] = [kind(self.geometry.draft) for _ in range(self.geometry.drafts)]
        self._host = MLATokenToKVPoolHost(
            self._target,
            self.layout,
            platform=platform,
            draft_device_pools=self._drafts,
            jit=not request.aot_kernels,
        )

    @property
    def device_slots(self) -> int:
        """Slots of the device pool, its padding page included."""
        return self.geometry.device_slots

    @property
    def host_slots(self) -> int:
        """Slots of the host pool."""
        return self._host.size

    def device_components(self) -> Sequence[tuple[str, int]]:
        """(component, layer) of every device plane: the target's, then the drafts'."""
        first = self.geometry.layers
        drafts = [(name, first + i) for i, draft in enumerate(self._drafts) for name, _ in draft.planes]
        return [*self._target.planes, *drafts]

    def _plane(self, component: str, layer: int) -> torch.Tensor:
        draft = layer - self.geometry.layers
        return self._target.plane(component, layer) if draft < 0 else self._drafts[draft].plane(component, 0)

    def read_device(self, component: str, layer: int) -> torch.Tensor:
        """Copy of one device plane: uint8 (device_slots, row_bytes)."""
        return self._plane(component, layer).clone()

    def write_device(self, component: str, layer: int, rows: torch.Tensor) -> None:
        """Overwrite one device plane with uint8 (device_slots, row_bytes)."""
        self._plane(component, layer).copy_(rows)

    def host_buffer(self, component: str) -> torch.Tensor:
        """Flat uint8 view of the host buffer that holds a component."""
        return self._host.buffers[component]

    def host_components(self) -> Sequence[str]:
        """Names of the host buffers."""
        return tuple(self._host.buffers)

    def backup(self, host_indices: torch.Tensor, device_indices: torch.Tensor) -> None:
        """Device to host, all layers and drafts."""
        self._host.backup_from_device_all_layer(host_indices, device_indices, self.io_backend)

    def load(self, host_indices: torch.Tensor, device_indices: torch.Tensor, layer: int) -> None:
        """Host to device for one layer or draft."""
        draft = layer >= self.geometry.layers
        self._host.load_to_device_per_layer(host_indices, device_indices, layer, self.io_backend, is_draft=draft)

    def call_sites(self) -> Sequence[str]:
        """No lines: the reference moves its rows itself."""
        return ()

    def alloc(self, need: int) -> torch.Tensor | None:
        """Allocate host slots; None when the pool is exhausted."""
        return self._host.alloc(need)

    def free(self, indices: torch.Tensor) -> int:
        """Give host slots back; returns their count."""
        return self._host.free(indices)

    def clear(self) -> None:
        """Forget every allocation."""
        self._host.clear()

    def available_size(self) -> int:
        """Free host slots."""
        return self._host.available_size()

    def size_per_token(self) -> int:
        """Bytes of one host token over all layers and components."""
        return self._host.get_size_per_token()

    def get_data_page(self, slot: int) -> torch.Tensor:
        """Flat uint8 copy of the storage page that starts at a host slot."""
        return self._host.get_data_page(slot)

    def set_from_flat_data_page(self, slot: int, page: torch.Tensor) -> None:
        """Write a flat uint8 storage page at a host slot."""
        self._host.set_from_flat_data_page(slot, page)

    def get_dummy_flat_data_page(self) -> torch.Tensor:
        """Flat uint8 zero page of the pool's storage page size."""
        return self._host.get_dummy_flat_data_page()

    def get_page_buffer_meta(self, host_indices: torch.Tensor) -> list[tuple[str, int, int]]:
        """(component, byte offset in its buffer, bytes) of each zero-copy piece."""
        return [
            (piece.component, piece.offset, piece.nbytes) for piece in self._host.get_page_buffer_meta(host_indices)
        ]

    def get_contiguous_buf_infos(self) -> list[tuple[str, int, int, int]]:
        """(component, byte offset in its buffer, bytes, item bytes) of each registered region."""
        return [(r.component, r.offset, r.nbytes, r.item_bytes) for r in self._host.get_contiguous_buf_infos()]

    def is_stride_page_aligned(self, alignment: int = 4096) -> bool:
        """Whether each page starts on a multiple of `alignment` bytes."""
        return self._host.is_stride_page_aligned(alignment)

    def close(self) -> None:
        """Nothing to release: the buffers go with the pair."""
