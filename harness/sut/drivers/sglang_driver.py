"""Builds SGLang's own device and host pools for a case, in the way that its server does."""

from __future__ import annotations

import contextlib
import importlib
import inspect
from types import ModuleType
from typing import TYPE_CHECKING, Any

from harness import platforms
from harness.errors import Unsupported
from harness.sut.drivers.generations.signature import Generation, packed_elements
from harness.sut.drivers.port import PoolRequest
from harness.sut.drivers.sglang_pair import SGLangPair
from harness.sut.drivers.surroundings import host_memory_budget, kernels_not_compiled, set_parallel_widths

if TYPE_CHECKING:
    from harness.emulation import Emulation

_LATENT = ("sglang.srt.mem_cache.memory_pool", "MLATokenToKVPool")
_SPLIT = ("sglang.srt.hardware_backend.npu.memory_pool_npu", "NPUMLATokenToKVPool")


class SGLangDriver:
    """One generation of SGLang's MLA pools on one platform."""

    def __init__(self, generation: Generation, pools: ModuleType, platform: str, emulation: Emulation | None) -> None:
        self.name = generation.name
        self.generation = generation
        self.platform = platform
        self.emulation = emulation
        self.device = emulation.device if emulation is not None else platforms.get(platform).torch_device
        self._pools = pools
        module, name = _SPLIT if platform == "ascend" else _LATENT
        self._device_class: Any = getattr(importlib.import_module(module), name)
        self._known = frozenset(inspect.signature(self._device_class.__init__).parameters)
        set_parallel_widths()
        if emulation is not None:
            emulation.modules_loaded()

    def build(self, request: PoolRequest) -> SGLangPair:
        """Build the target pool, its drafts and the host pool. Raises Unsupported for what this API cannot express."""
        geometry = request.geometry
        if request.pool != "mla":
            msg = f"the driver {self.name} drives mla pools; expected pool='mla', found {request.pool!r}"
            raise Unsupported(msg)
        if geometry.drafts and not self.generation.packs_drafts:
            msg = f"this release packs no draft pools: its host pool has no parameter for them (API of {self.name})"
            raise Unsupported(msg)
        target = self._device_pool(request, geometry.layers, indexer=True)
        drafts = [self._device_pool(request, 1, indexer=False) for _ in range(geometry.drafts)]
        branch = kernels_not_compiled(self._pools) if request.aot_kernels else contextlib.nullcontext()
        with host_memory_budget(), branch:
            host = self.generation.build_host(self._pools.MLATokenToKVPoolHost, target, drafts, request)
        return SGLangPair(self, request, target, drafts, host)

    def _device_pool(self, request: PoolRequest, layers: int, *, indexer: bool) -> Any:
        geometry = request.geometry
        arguments: dict[str, Any] = {
            "size": geometry.device_tokens,
            "page_size": geometry.page_size,
            "dtype": geometry.torch_dtype,
            "kv_lora_rank": geometry.kv_lora_rank,
            "qk_rope_head_dim": geometry.qk_rope_head_dim,
            "layer_num": layers,
            "device": self.device,
            "enable_memory_saver": False,
        }
        if self.platform == "ascend":
            arguments |= self._indexer(request) if indexer else {"index_head_dim": None}
        elif geometry.packed_row_bytes is not None:
            arguments |= {"use_dsa": True, "override_kv_cache_dim": packed_elements(request)}
        return self._device_class(**arguments)

    def _indexer(self, request: PoolRequest) -> dict[str, Any]:
        geometry = request.geometry
        arguments: dict[str, Any] = {"index_head_dim": geometry.index_head_dim}
        if geometry.indexer_layers is not None:
            if "indexer_layer_ids" not in self._known:
                msg = "this release has an indexer on every layer or on none: no parameter indexer_layer_ids"
                raise Unsupported(msg)
            arguments["indexer_layer_ids"] = geometry.indexer_layers
        return arguments
