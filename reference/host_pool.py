"""The MLA host pool: slots, backup, load, drafts and storage pages, for every layout.

Names follow SGLang's `MLATokenToKVPoolHost`; what is refused, and where its releases differ, is in FACTS.md sections 1
and 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from reference import checks, moves
from reference.buffers import LayerTables, SplitTensors, needed_buffers
from reference.device_pool import DevicePool
from reference.layouts import HostLayout, host_layout
from reference.memory import allocate, check_budget
from reference.slots import SlotAllocator
from reference.storage import Piece, Region, StoragePages
from reference.support import Refused, decide
from reference.transfer import TransferDirection
from reference.transfer.indices import check_index, check_pair, page_starts


class MLATokenToKVPoolHost:
    """Host mirror of a device pool and its MTP draft pools, in one layout, on one platform.

    `budget_bytes` is the host memory that the pool may take (None: no limit); `jit` chooses between the JIT and the
    AOT kernels where a platform has both. Raises ValueError for an unknown layout, a pool that does not fit the budget,
    and a draft that is not one layer of the target's row.
    """

    def __init__(
        self,
        device_pool: DevicePool,
        layout: str,
        *,
        platform: str = "cuda",
        draft_device_pools: Sequence[DevicePool] = (),
        budget_bytes: int | None = None,
        jit: bool = True,
    ) -> None:
        for number, draft in enumerate(draft_device_pools):
            _check_draft(number, draft, device_pool)
        self.geometry = replace(device_pool.geometry, drafts=len(draft_device_pools))
        self.host_layout: HostLayout = host_layout(layout, self.geometry)
        self.layout, self.platform, self.jit = layout, platform, jit
        self._device_pool, self._drafts = device_pool, tuple(draft_device_pools)
        check_budget(self.size * self.get_size_per_token(), budget_bytes)
        self.buffers = {c.name: allocate(self.host_layout.nbytes(c.name)) for c in self.host_layout.components}
        self.pages = StoragePages(self.host_layout, self.buffers)
        self.slots = SlotAllocator(self.size * self.geometry.dcp_size, self.geometry.logical_page_size)

    @property
    def size(self) -> int:
        """Host slots of this rank; with DCP, `dcp_size` times as many tokens share them."""
        return self.geometry.host_slots

    def get_size_per_token(self) -> int:
        """Bytes of one slot over all layers and components, indexer rows included."""
        return sum(self.host_layout.layout_dim(c.name) for c in self.host_layout.components)

    def tensor(self, component: str) -> torch.Tensor:
        """View a component's buffer in the layout's shape and the stored dtype, no copy."""
        dtype = torch.float32 if component == "scale" else self.geometry.store_dtype
        return self.buffers[component].view(dtype).view(self.host_layout.shape(component))

    # --- slots: tokens as the cache controller counts them ---

    def alloc(self, need_size: int) -> torch.Tensor | None:
        """Return int64 (need_size,) slots, or None when the pool has not so many; see `SlotAllocator.alloc`."""
        return self.slots.alloc(need_size)

    def free(self, indices: torch.Tensor) -> int:
        """Give slots back; see `SlotAllocator.free`."""
        return self.slots.free(indices)

    def clear(self) -> None:
        """Forget every allocation."""
        self.slots.clear()

    def available_size(self) -> int:
        """Free slots."""
        return self.slots.available_size()

    # --- transfers ---

    def backup_from_device_all_layer(
        self, host_indices: torch.Tensor, device_indices: torch.Tensor, io_backend: str
    ) -> None:
        """Copy device slots to host slots: all layers, drafts and indexer rows.

        Raises ValueError or IndexError as `reference.support` and `reference.transfer` say; nothing is written then.
        """
        to, source = ("host_indices", host_indices), ("device_indices", device_indices)
        slots = self._prepare(to, source, io_backend)
        found = needed_buffers(io_backend, self._device_pool, self._drafts)
        if isinstance(found, SplitTensors):
            self._exchange(found, moves.spans(self.host_layout), slots, TransferDirection.D2H)
        else:
            moves.backup_latent(io_backend, self._latent(), found.layers, **slots)

    def load_to_device_per_layer(
        self,
        host_indices: torch.Tensor,
        device_indices: torch.Tensor,
        layer_id: int,
        io_backend: str,
        *,
        is_draft: bool = False,
    ) -> None:
        """Copy host slots to device slots for one layer, or one draft: layer_id = target layers + its depth.

        A target layer that another rank stores is left to that rank. Raises as `backup_from_device_all_layer`, and
        ValueError when is_draft does not fit layer_id.
        """
        checks.index_below("layer_id", layer_id, self.geometry.total_layers)
        checks.equal("is_draft", is_draft, layer_id >= self.geometry.layers, f"layer_id={layer_id}")
        to, source = ("device_indices", device_indices), ("host_indices", host_indices)
        slots = self._prepare(to, source, io_backend)
        found = needed_buffers(io_backend, self._device_pool, self._drafts)
        layers = self.host_layout.components[0].layers
        if layer_id not in layers:
            return
        if isinstance(found, LayerTables):
            at = layers.index(layer_id)
            moves.load_latent(io_backend, self._latent(), found.layers[at], at, **slots)
        else:
            self._exchange(found, moves.spans(self.host_layout, only=layer_id), slots, TransferDirection.H2D)

    def _exchange(
        self,
        found: SplitTensors,
        parts: list[moves.Span],
        slots: dict[str, torch.Tensor],
        direction: TransferDirection,
    ) -> None:
        host = {name: self.tensor(name) for name in self.buffers}
        moves.exchange_split(found.pools, host, parts, direction, **slots)

    def _prepare(
        self, dst: tuple[str, torch.Tensor], src: tuple[str, torch.Tensor], io_backend: str
    ) -> dict[str, torch.Tensor]:
        """Refuse what the matrix refuses, check the slots, and translate them to this rank's slots, by side."""
        answer = decide(self.platform, self.layout, io_backend)
        if isinstance(answer, Refused):
            raise answer.error(answer.why)
        if self.geometry.layer_shard_size > 1:
            self._refuse_sharded(io_backend)
        g = self.geometry
        bounds = {"host_indices": g.host_slots * g.dcp_size, "device_indices": g.device_slots * g.dcp_size}
        check_pair(*dst, bounds[dst[0]], *src, bounds[src[0]])
        return {name: self._rank_slots(name, indices) for name, indices in (dst, src)}

    def _refuse_sharded(self, io_backend: str) -> None:
        """What layer-sharded pools cannot do (FACTS.md section 2.2): they move layer by layer."""
        if io_backend == "kernel_ascend":
            msg = f"Unsupported IO backend: {io_backend} moves all layers at once, and this pool is layer-sharded"
            raise ValueError(msg)
        if self.layout != "layer_first" and (io_backend == "direct" or not self.jit):
            msg = f"Unsupported layout: {self.layout} of a layer-sharded pool needs the JIT one-layer kernel"
            raise ValueError(msg)

    def _rank_slots(self, name: str, indices: torch.Tensor) -> torch.Tensor:
        """Slots of this rank's pool: with DCP, token t of a page lies on rank t % dcp_size (FACTS.md section 1.2)."""
        g = self.geometry
        if g.dcp_size == 1:
            return indices
        page_starts(name, indices, g.logical_page_size)
        return indices[g.dcp_rank :: g.dcp_size] // g.dcp_size

    def _latent(self) -> moves.Latent:
        layout, name = self.host_layout, "latent"
        tensor = self.buffers[name].view(*layout.shape(name)[:-1], layout.item_size(name))
        layers = len(layout.component(name).layers)
        sharded = self.geometry.layer_shard_size > 1
        page = self.geometry.page_size
        return moves.Latent(self.layout, tensor, layout.item_size(name), layers, page, self.jit, sharded)

    # --- storage pages ---

    def get_data_page(self, index: int) -> torch.Tensor:
        """Copy out the storage page that starts at a slot: flat uint8.

        Raises ValueError when no page starts there, IndexError outside the pool.
        """
        return self.pages.read(self._page(index))

    def set_from_flat_data_page(self, index: int, data_page: torch.Tensor) -> None:
        """Copy in a storage page at a slot. Raises as `get_data_page`, and ValueError for a page of another size."""
        self.pages.write(self._page(index), data_page)

    def get_dummy_flat_data_page(self) -> torch.Tensor:
        """Zero storage page: flat uint8, as many bytes as `get_data_page` returns."""
        return torch.zeros(self.pages.nbytes, dtype=torch.uint8)

    def get_page_buffer_meta(self, indices: torch.Tensor) -> list[Piece]:
        """Pieces of the storage pages that slots name, page by page; see `StoragePages.pieces`.

        Raises ValueError when the slots are not whole pages, IndexError outside the pool.
        """
        check_index("indices", indices, self.slots.slots)
        starts = page_starts("indices", indices, self.geometry.logical_page_size)
        return [piece for start in starts.tolist() for piece in self.pages.pieces(self._page(start))]

    def get_contiguous_buf_infos(self) -> list[Region]:
        """Regions to register with a transfer engine; see `StoragePages.regions`."""
        return self.pages.regions()

    def is_stride_page_aligned(self, alignment: int = 4096) -> bool:
        """Whether each page is one piece that starts on a multiple of `alignment` bytes; see `StoragePages.aligned`."""
        return self.pages.aligned(alignment)

    def _page(self, index: int) -> int:
        """Page number of the logical page that starts at a slot."""
        checks.index_below("index", index, self.slots.slots)
        checks.multiple_of("index", index, self.geometry.logical_page_size, "storage pages start on pages")
        return index // self.geometry.logical_page_size


def _check_draft(number: int, draft: DevicePool, target: DevicePool) -> None:
    """Refuse a draft pool that cannot be packed after the target's layers (FACTS.md section 3)."""
    name = f"draft_device_pools[{number}]"
    checks.equal(f"type of {name}", type(draft).__name__, type(target).__name__, "the type of the target pool")
    checks.equal(f"layers of {name}", draft.geometry.layers, 1, "each draft pool brings one layer")
    for field in ("latent_row_bytes", "kv_lora_rank", "dtype", "page_size", "device_slots"):
        found, expected = getattr(draft.geometry, field), getattr(target.geometry, field)
        checks.equal(f"{field} of {name}", found, expected, "the target pool's, since their rows are packed together")
