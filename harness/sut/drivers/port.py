"""The driver port: the only way in which suites speak to a SUT's pools.

One `PoolPair` is a device pool (the target pool and its packed MTP draft pools) with the host pool that mirrors it.
Rows are bytes: uint8 CPU tensors of shape (slots, row_bytes). Layers are numbered as the host pool numbers them:
target layers 0..layers-1, then one layer for each draft pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from reference.geometry import PoolGeometry


@dataclass(frozen=True, slots=True)
class PoolRequest:
    """What a case asks a driver to build.

    `aot_kernels` asks for the branch without JIT kernels where the platform has both (FACTS.md section 2.2).
    """

    geometry: PoolGeometry
    layout: str
    io_backend: str
    pool: str = "mla"
    aot_kernels: bool = False
    pin_memory: bool = False


class PoolPair(Protocol):
    """A device pool with its host pool, built by a driver. Index tensors are int64 CPU tensors of token slots."""

    geometry: PoolGeometry
    layout: str
    io_backend: str

    @property
    def device_slots(self) -> int:
        """Slots of the device pool, its padding page (slots 0..page_size-1) included."""

    @property
    def host_slots(self) -> int:
        """Slots of the host pool."""

    def device_components(self) -> Sequence[tuple[str, int]]:
        """(component, layer) of every device plane, in a fixed order."""

    def read_device(self, component: str, layer: int) -> torch.Tensor:
        """Copy of one device plane: uint8 (device_slots, row_bytes)."""

    def write_device(self, component: str, layer: int, rows: torch.Tensor) -> None:
        """Overwrite one device plane with uint8 (device_slots, row_bytes)."""

    def host_buffer(self, component: str) -> torch.Tensor:
        """Flat uint8 view (no copy) of the whole host buffer that holds a component; KeyError when there is none."""

    def host_components(self) -> Sequence[str]:
        """Names of the host buffers: `latent`, or `k`, `v` and perhaps `index_k`, `scale`."""

    def backup(self, host_indices: torch.Tensor, device_indices: torch.Tensor) -> None:
        """Device to host, all layers and drafts; indices are placed as SGLang's cache controller places them."""

    def load(self, host_indices: torch.Tensor, device_indices: torch.Tensor, layer: int) -> None:
        """Host to device for one layer (a draft where layer >= geometry.layers)."""

    def call_sites(self) -> Sequence[str]:
        """Lines of the SUT that called a transfer kernel since the pair was built: `sglang/…/file.py:line`."""

    def alloc(self, need: int) -> torch.Tensor | None:
        """Allocate host slots; None when the pool is exhausted."""

    def free(self, indices: torch.Tensor) -> int:
        """Give host slots back; returns their count."""

    def clear(self) -> None:
        """Forget every allocation."""

    def available_size(self) -> int:
        """Free host slots."""

    def size_per_token(self) -> int:
        """Bytes of one host token over all layers and components, as the pool itself says."""

    def get_data_page(self, slot: int) -> torch.Tensor:
        """Flat uint8 copy of the storage page that starts at a host slot."""

    def set_from_flat_data_page(self, slot: int, page: torch.Tensor) -> None:
        """Write a flat uint8 storage page at a host slot."""

    def get_dummy_flat_data_page(self) -> torch.Tensor:
        """Flat uint8 zero page of the pool's storage page size."""

    def get_page_buffer_meta(self, host_indices: torch.Tensor) -> list[tuple[str, int, int]]:
        """(component, byte offset in its buffer, bytes) of each zero-copy piece, in the pool's order."""

    def get_contiguous_buf_infos(self) -> list[tuple[str, int, int, int]]:
        """(component, byte offset in its buffer, bytes, item bytes) of each registered buffer."""

    def is_stride_page_aligned(self, alignment: int = 4096) -> bool:
        """Whether each page starts on a multiple of `alignment` bytes."""

    def close(self) -> None:
        """Release the host buffers (and what the emulation registered for them)."""


class Driver(Protocol):
    """One generation of a SUT's pool API."""

    name: str

    def build(self, request: PoolRequest) -> PoolPair:
        """Build the device pool, its drafts and the host pool.

        Raises whatever the SUT raises; `Unsupported` when this API cannot express the request (drafts before 0.5.18).
        """
