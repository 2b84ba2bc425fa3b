"""The DSA indexer pools: one row a page, index keys and their fp32 scales packed (FACTS.md sections 1.5 and 3).

The device pool keeps a uint8 (pages, page bytes) tensor for each layer that has an indexer. The host pool follows the
slots and the layout of the MLA host pool beside it, and moves pages as that one moves tokens: it *is* such a pool, of
rows of one page and pages of one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from reference import checks
from reference.device_pool import MLATokenToKVPool
from reference.geometry import PoolGeometry
from reference.host_pool import MLATokenToKVPoolHost
from reference.support import Refused, decide
from reference.transfer.indices import check_pair, page_starts

# Index keys are quantised in blocks of 128 with an fp32 scale each; the index head is one block.
_BLOCK = 128
LAYOUTS = ("layer_first", "page_first", "page_first_direct")


def bytes_per_token(index_head_dim: int) -> int:
    """Bytes of one token of one layer: fp8 keys and a scale for each block of 128. ValueError for part of a block."""
    checks.multiple_of("index_head_dim", index_head_dim, _BLOCK, "index keys are quantised in blocks of 128")
    return index_head_dim + index_head_dim // _BLOCK * 4


def indexer_geometry(geometry: PoolGeometry) -> PoolGeometry:
    """Return the geometry of a pool whose rows are the indexer pages of `geometry`, one layer for each indexer.

    Raises ValueError when the model has no indexer.
    """
    if geometry.index_head_dim is None:
        msg = "index_head_dim=None: this model has no indexer"
        raise ValueError(msg)
    layers = geometry.layers if geometry.indexer_layers is None else len(geometry.indexer_layers)
    page_bytes = geometry.page_size * bytes_per_token(geometry.index_head_dim)
    return PoolGeometry(
        layers=layers,
        drafts=geometry.drafts,
        kv_lora_rank=page_bytes,
        qk_rope_head_dim=0,
        page_size=1,
        device_tokens=geometry.device_pages - 1,
        host_token_capacity=(geometry.host_slots + geometry.page_size + 1) // geometry.page_size,
        dtype="fp8_e4m3",
    )


class DSATokenToKVPool(MLATokenToKVPool):
    """A latent pool with indexer rows: `index_k_with_scale_buffer` holds uint8 (pages, page bytes) a layer."""

    def __init__(self, geometry: PoolGeometry, *, device: str = "cpu") -> None:
        super().__init__(geometry, device=device)
        self.indexer = MLATokenToKVPool(indexer_geometry(geometry), device=device)

    @property
    def index_k_with_scale_buffer(self) -> list[torch.Tensor]:
        """The indexer rows of each layer that has an indexer, in layer order."""
        return [layer.squeeze(1) for layer in self.indexer.kv_buffer]


class DSAIndexerPoolHost:
    """Host mirror of the indexer rows of a DSA pool and its drafts. Slots are those of the MLA host pool beside it.

    Raises ValueError for a layout that the pool does not have, and for a draft with other rows.
    """

    def __init__(
        self,
        device_pool: DSATokenToKVPool,
        layout: str,
        *,
        platform: str = "cuda",
        draft_device_pools: Sequence[DSATokenToKVPool] = (),
        budget_bytes: int | None = None,
    ) -> None:
        if layout not in LAYOUTS:
            msg = f"Unsupported layout: layout={layout!r} is no layout of the indexer pool; expected {LAYOUTS}"
            raise ValueError(msg)
        self.geometry = replace(device_pool.geometry, drafts=len(draft_device_pools))
        self.layout, self.platform = layout, platform
        own = self.geometry.indexer_layers
        self.indexer_layers = tuple(range(self.geometry.layers)) if own is None else own
        self.pages = MLATokenToKVPoolHost(
            device_pool.indexer,
            layout,
            platform=platform,
            draft_device_pools=[draft.indexer for draft in draft_device_pools],
            budget_bytes=budget_bytes,
            jit=False,
        )

    def backup_from_device_all_layer(
        self, host_indices: torch.Tensor, device_indices: torch.Tensor, io_backend: str
    ) -> None:
        """Copy the indexer pages of device slots to those of host slots, all layers and drafts.

        Indices are token slots of whole pages. Raises ValueError and IndexError as the MLA host pool does.
        """
        to, source = ("host_indices", host_indices), ("device_indices", device_indices)
        self.pages.backup_from_device_all_layer(**self._page_numbers(to, source, io_backend), io_backend=io_backend)

    def load_to_device_per_layer(
        self,
        host_indices: torch.Tensor,
        device_indices: torch.Tensor,
        layer_id: int,
        io_backend: str,
        *,
        is_draft: bool = False,
    ) -> None:
        """Copy host pages to device pages for one layer, or one draft; a layer without an indexer has none to copy."""
        checks.index_below("layer_id", layer_id, self.geometry.total_layers)
        checks.equal("is_draft", is_draft, layer_id >= self.geometry.layers, f"layer_id={layer_id}")
        to, source = ("device_indices", device_indices), ("host_indices", host_indices)
        numbers = self._page_numbers(to, source, io_backend)
        layers = (*self.indexer_layers, *range(self.geometry.layers, self.geometry.total_layers))
        if layer_id in layers:
            at = layers.index(layer_id)
            self.pages.load_to_device_per_layer(**numbers, layer_id=at, io_backend=io_backend, is_draft=is_draft)

    def _page_numbers(
        self, dst: tuple[str, torch.Tensor], src: tuple[str, torch.Tensor], io_backend: str
    ) -> dict[str, torch.Tensor]:
        answer = decide(self.platform, self.layout, io_backend, pool="dsa_indexer")
        if isinstance(answer, Refused):
            raise answer.error(answer.why)
        g = self.geometry
        bounds = {"host_indices": g.host_slots, "device_indices": g.device_slots}
        check_pair(*dst, bounds[dst[0]], *src, bounds[src[0]])
        return {name: page_starts(name, indices, g.page_size) // g.page_size for name, indices in (dst, src)}

    def get_data_page(self, index: int) -> torch.Tensor:
        """Copy out the indexer page of the page that starts at a slot: flat uint8, all layers."""
        return self.pages.get_data_page(self._page(index))

    def set_from_flat_data_page(self, index: int, data_page: torch.Tensor) -> None:
        """Copy in an indexer page at a slot. ValueError for a page of another size."""
        self.pages.set_from_flat_data_page(self._page(index), data_page)

    def get_dummy_flat_data_page(self) -> torch.Tensor:
        """Zero indexer page, of the size that `get_data_page` returns."""
        return self.pages.get_dummy_flat_data_page()

    def _page(self, index: int) -> int:
        checks.index_below("index", index, self.geometry.host_slots)
        checks.multiple_of("index", index, self.geometry.page_size, "storage pages start on pages")
        return index // self.geometry.page_size
