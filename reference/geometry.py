"""The geometry of one rank's KV pool: layers, row widths, page size, dtype -> bytes.

Layers are numbered as the host pool numbers them: target layers 0..layers-1, then one layer for each MTP draft pool.
Sizes are per rank: with decode context parallelism (DCP) a page of `logical_page_size` tokens fills one page of
`page_size` slots on each rank (FACTS.md section 1.3).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from reference import checks, dtypes


@dataclass(frozen=True, slots=True)
class Component:
    """One kind of row that a host pool keeps: `latent`, or `k`, `v`, `index_k`, `scale`.

    `row_bytes` is the width of one row of one layer; `layers` are the layers that have such a row, ascending.
    """

    name: str
    row_bytes: int
    layers: tuple[int, ...]
    element_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolGeometry:
    """Sizes of a device pool, its draft pools and its host pool. Raises ValueError that names the impossible field.

    `device_tokens` excludes the padding page. `indexer_layers` are target layers; None means all of them once
    `index_head_dim` is set. `packed_row_bytes` overrides the width of a latent row (DeepSeek-V3.2 in fp8: 656).
    `host_token_capacity` sets the host pool's size exactly, else `host_ratio` does, with one extra page.
    """

    layers: int
    drafts: int = 0
    kv_lora_rank: int
    qk_rope_head_dim: int
    index_head_dim: int | None = None
    indexer_layers: tuple[int, ...] | None = None
    index_scale: bool = False
    packed_row_bytes: int | None = None
    page_size: int
    device_tokens: int
    host_ratio: float = 2.0
    host_token_capacity: int | None = None
    dtype: str = "bf16"
    dcp_size: int = 1
    dcp_rank: int = 0
    start_layer: int = 0
    layer_shard_size: int = 1
    layer_shard_rank: int = 0

    def __post_init__(self) -> None:
        dtypes.torch_dtype(self.dtype)
        for name in ("layers", "kv_lora_rank", "page_size", "device_tokens", "dcp_size", "layer_shard_size"):
            checks.at_least(name, getattr(self, name), 1)
        checks.multiple_of("device_tokens", self.device_tokens, self.page_size, "device pools hold whole pages")
        for name in ("drafts", "qk_rope_head_dim", "start_layer"):
            checks.at_least(name, getattr(self, name), 0)
        checks.index_below("dcp_rank", self.dcp_rank, self.dcp_size)
        checks.index_below("layer_shard_rank", self.layer_shard_rank, self.layer_shard_size)
        self._check_host_size()
        self._check_indexer()

    def _check_host_size(self) -> None:
        if self.host_token_capacity is not None:
            checks.at_least("host_token_capacity", self.host_token_capacity, 1)
            checks.multiple_of("host_token_capacity", self.host_token_capacity, self.page_size, "the page size")
        if not self.host_ratio > 0:
            msg = f"host_ratio={self.host_ratio} must be greater than 0"
            raise ValueError(msg)

    def _check_indexer(self) -> None:
        if self.packed_row_bytes is not None:
            checks.at_least("packed_row_bytes", self.packed_row_bytes, 1)
            checks.multiple_of("packed_row_bytes", self.packed_row_bytes, self.itemsize, f"the bytes of a {self.dtype}")
        if self.index_head_dim is None:
            checks.equal("indexer_layers", self.indexer_layers, None, "index_head_dim is not set")
            checks.equal("index_scale", self.index_scale, expected=False, why="index_head_dim is not set")
            return
        checks.at_least("index_head_dim", self.index_head_dim, 1)
        for layer in self.indexer_layers or ():
            checks.index_below("indexer_layers", layer, self.layers)
        if self.indexer_layers is not None and [*self.indexer_layers] != sorted({*self.indexer_layers}):
            msg = f"indexer_layers={self.indexer_layers} must be ascending without repetition"
            raise ValueError(msg)

    @property
    def torch_dtype(self) -> torch.dtype:
        """What the pool's values are."""
        return dtypes.torch_dtype(self.dtype)

    @property
    def store_dtype(self) -> torch.dtype:
        """What the pool's tensors are: uint8 for fp8."""
        return dtypes.store_dtype(self.dtype)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.torch_dtype.itemsize

    @property
    def end_layer(self) -> int:
        """Last target layer of this pipeline stage, inclusive, as the model numbers layers."""
        return self.start_layer + self.layers - 1

    @property
    def owned_layers(self) -> range:
        """Target layers that this rank stores: a contiguous share, the first ranks one more (context parallelism)."""
        share, more = divmod(self.layers, self.layer_shard_size)
        start = self.layer_shard_rank * share + min(self.layer_shard_rank, more)
        return range(start, start + share + (self.layer_shard_rank < more))

    @property
    def draft(self) -> PoolGeometry:
        """Geometry of one MTP draft pool: a single layer with the target's row, without indexer rows."""
        return replace(
            self,
            layers=1,
            drafts=0,
            start_layer=0,
            layer_shard_size=1,
            layer_shard_rank=0,
            index_head_dim=None,
            indexer_layers=None,
            index_scale=False,
        )

    @property
    def total_layers(self) -> int:
        """Host layers: target and drafts."""
        return self.layers + self.drafts

    @property
    def logical_page_size(self) -> int:
        """Tokens of one page over all DCP ranks."""
        return self.page_size * self.dcp_size

    @property
    def latent_row_bytes(self) -> int:
        """Bytes of one latent row: compressed KV and rope key, or the packed width."""
        return self.packed_row_bytes or (self.kv_lora_rank + self.qk_rope_head_dim) * self.itemsize

    @property
    def device_slots(self) -> int:
        """Device slots, the padding page (slots 0..page_size-1) included."""
        return self.device_tokens + self.page_size

    @property
    def device_pages(self) -> int:
        """Device pages, the padding page included."""
        return self.device_slots // self.page_size

    @property
    def host_pages(self) -> int:
        """Host pages: exact with a capacity; by ratio always one more than fits (FACTS.md section 1.3)."""
        if self.host_token_capacity is not None:
            return self.host_token_capacity // self.page_size
        return int(self.device_tokens * self.host_ratio) // self.page_size + 1

    @property
    def host_slots(self) -> int:
        """Host slots; slot 0 is a slot like any other."""
        return self.host_pages * self.page_size

    def components(self, *, split: bool) -> tuple[Component, ...]:
        """Rows of one token: a latent row, or with `split` the Ascend pool's k, v, index_k and scale rows.

        `layers` are those that this rank stores. A packed row holds the rope part too, so the split pool has no v
        component then (FACTS.md section 3). Drafts carry no indexer rows.
        """
        every = (*self.owned_layers, *range(self.layers, self.total_layers))
        item = self.itemsize
        if not split:
            return (Component("latent", self.latent_row_bytes, every, item),)
        parts = [Component("k", self.packed_row_bytes or self.kv_lora_rank * item, every, item)]
        if self.packed_row_bytes is None and self.qk_rope_head_dim:
            parts.append(Component("v", self.qk_rope_head_dim * item, every, item))
        if self.index_head_dim is not None:
            every_indexer = range(self.layers) if self.indexer_layers is None else self.indexer_layers
            layers = tuple(layer for layer in every_indexer if layer in self.owned_layers)
            parts.append(Component("index_k", self.index_head_dim * item, layers, item))
            if self.index_scale:
                parts.append(Component("scale", 4, layers, 4))
        return tuple(parts)

    def size_per_token(self, *, split: bool) -> int:
        """Host bytes of one token over all layers and components."""
        return sum(c.row_bytes * len(c.layers) for c in self.components(split=split))

    def sized_by_gigabytes(self, gigabytes: float, *, split: bool) -> PoolGeometry:
        """Return this geometry with the host pool sized in GB (10^9 bytes), rounded up to one page more than fits.

        Raises ValueError when gigabytes is not positive.
        """
        if not gigabytes > 0:
            msg = f"gigabytes={gigabytes} must be greater than 0"
            raise ValueError(msg)
        tokens = int(gigabytes * 1e9 // self.size_per_token(split=split))
        return replace(self, host_token_capacity=(tokens // self.page_size + 1) * self.page_size)
