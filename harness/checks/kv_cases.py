"""The kv cases of a platform: every legal combination, and every pair of layout and io backend that must be refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

from harness.sut.drivers.port import PoolRequest
from reference.geometry import PoolGeometry
from reference.layouts import LAYOUTS
from reference.support import IO_BACKENDS, Works, decide

LAYERS: Final = 3
DRAFTS: Final = 2
# A latent row of 192 elements: 384 bytes in bf16, which the JIT kernels take on every platform (FACTS.md section 4.2).
KV_LORA_RANK: Final = 128
QK_ROPE_HEAD_DIM: Final = 64
INDEX_HEAD_DIM: Final = 32
# DeepSeek-V3.2's packed fp8 row: 512 fp8 + 4 fp32 scales + 64 bf16 (FACTS.md section 3).
PACKED_ROW_BYTES: Final = 656

# Device tokens by page size: at least five pages, few enough that a case takes milliseconds.
_TOKENS: Final = {1: 48, 16: 160, 64: 384, 128: 640}
_DTYPES: Final = ("bf16", "fp16", "fp32", "fp8_e4m3", "fp8_e5m2", "fp8_packed")
_PAGES: Final = (1, 16, 64)
# The Ascend pools store fp8 only in their own packed form (FACTS.md section 3), so these are what they take plainly.
_ASCEND_DTYPES: Final = ("bf16", "fp16")
_ASCEND_PAGES: Final = (16, 64, 128)


@dataclass(frozen=True, slots=True, kw_only=True)
class KvCase:
    """One point of the matrix. `indexer` is "", "indexer" (every target layer) or "indexer-subset" (layers 0 and 2)."""

    platform: str
    layout: str
    io_backend: str
    dtype: str = "bf16"
    page_size: int = 16
    drafts: int = 0
    indexer: str = ""
    aot: bool = False

    @property
    def id(self) -> str:
        """The parameters as they stand in the case id."""
        parts = [self.platform, self.layout, self.io_backend, self.dtype, f"p{self.page_size}"]
        parts += [f"mtp{self.drafts}"] if self.drafts else []
        parts += [self.indexer] if self.indexer else []
        return "-".join([*parts, "aot"] if self.aot else parts)

    @property
    def geometry(self) -> PoolGeometry:
        """The pool's geometry: 3 target layers, rows of 192 elements."""
        packed = self.dtype == "fp8_packed"
        return PoolGeometry(
            layers=LAYERS,
            drafts=self.drafts,
            kv_lora_rank=512 if packed else KV_LORA_RANK,
            qk_rope_head_dim=QK_ROPE_HEAD_DIM,
            packed_row_bytes=PACKED_ROW_BYTES if packed else None,
            index_head_dim=INDEX_HEAD_DIM if self.indexer else None,
            indexer_layers=(0, 2) if self.indexer == "indexer-subset" else None,
            page_size=self.page_size,
            device_tokens=_TOKENS[self.page_size],
            dtype="fp8_e4m3" if packed else self.dtype,
        )

    def request(self) -> PoolRequest:
        """What the driver is asked to build."""
        return PoolRequest(self.geometry, self.layout, self.io_backend, aot_kernels=self.aot)


def _axes(platform: str, io_backend: str) -> Iterator[tuple[str, int, int, str, bool]]:
    if io_backend == "kernel_ascend":
        indexers = ("", "indexer", "indexer-subset")
        yield from product(_ASCEND_DTYPES, _ASCEND_PAGES, (0, DRAFTS), indexers, (False,))
        return
    yield from product(_DTYPES, _PAGES, (0, DRAFTS), ("",), (False,))
    if io_backend == "kernel" and platform in ("cuda", "rocm"):
        # Without JIT kernels a row is so many bytes and no more: one dtype stands for all.
        yield from product(("bf16",), _PAGES, (0, DRAFTS), ("",), (True,))


def legal(platform: str) -> list[KvCase]:
    """Every combination that must work on a platform."""
    return [
        KvCase(
            platform=platform,
            layout=layout,
            io_backend=io_backend,
            dtype=dtype,
            page_size=page_size,
            drafts=drafts,
            indexer=indexer,
            aot=aot,
        )
        for layout, io_backend in product(LAYOUTS, IO_BACKENDS)
        if isinstance(decide(platform, layout, io_backend), Works)
        for dtype, page_size, drafts, indexer, aot in _axes(platform, io_backend)
    ]


def illegal(platform: str) -> list[KvCase]:
    """Every layout x io backend that must be refused on a platform, and an unknown one of each."""
    pairs = [*product((*LAYOUTS, "page_head", "no_such_layout"), (*IO_BACKENDS, "no_such_backend"))]
    return [
        KvCase(platform=platform, layout=layout, io_backend=io_backend)
        for layout, io_backend in pairs
        if not isinstance(decide(platform, layout, io_backend), Works)
    ]
