"""Device pools: the latent pool of CUDA, ROCm and XPU, and the split pool of Ascend (FACTS.md section 3).

Slots 0..page_size-1 of every device pool are padding: slot 0 takes dummy writes, and no request owns it. Layers are
the pool's own: a draft pool is a pool with the single layer 0.
"""

from __future__ import annotations

import torch

from reference.geometry import PoolGeometry


class MLATokenToKVPool:
    """A list of layer tensors (device_slots, 1, row elements) of the store dtype, with a pointer table.

    With `packed_row_bytes` the rows are opaque (DeepSeek-V3.2 in fp8). `layers` are the layers that this rank stores.
    """

    def __init__(self, geometry: PoolGeometry, *, device: str = "cpu") -> None:
        self.geometry = geometry
        self.layers = tuple(geometry.owned_layers)
        self.kv_cache_dim = geometry.latent_row_bytes // geometry.itemsize
        shape = (geometry.device_slots, 1, self.kv_cache_dim)
        self.kv_buffer = [torch.zeros(shape, dtype=geometry.store_dtype, device=device) for _ in self.layers]

    @property
    def data_ptrs(self) -> torch.Tensor:
        """The pointer table: uint64, one address for each stored layer."""
        return torch.tensor([layer.data_ptr() for layer in self.kv_buffer], dtype=torch.uint64)

    @property
    def planes(self) -> tuple[tuple[str, int], ...]:
        """(component, layer) of everything stored."""
        return tuple(("latent", layer) for layer in self.layers)

    def plane(self, component: str, layer: int) -> torch.Tensor:
        """View the rows of one layer: uint8 (device_slots, row_bytes), no copy. ValueError when it is not stored."""
        _check_stored(self.planes, component, layer)
        return self.kv_buffer[self.layers.index(layer)].flatten(1).view(torch.uint8)


class NPUMLATokenToKVPool:
    """Contiguous tensors over all layers, (layers, pages, page_size, 1, row elements), and **no pointer table**.

    `v_buffer` is None with packed rows, `index_k_buffer` without an indexer, `index_k_scale_buffer` without scales; the
    scale is fp32 (indexer layers, pages, page_size, 1).
    """

    def __init__(self, geometry: PoolGeometry, *, device: str = "cpu") -> None:
        self.geometry = geometry
        tensors: dict[str, torch.Tensor] = {}
        pages = (geometry.device_pages, geometry.page_size)
        own = tuple(geometry.owned_layers)
        self._layers: dict[str, tuple[int, ...]] = {}
        for part in geometry.components(split=True):
            layers = self._layers[part.name] = tuple(layer for layer in part.layers if layer in own)
            dtype = torch.float32 if part.name == "scale" else geometry.store_dtype
            heads = () if part.name == "scale" else (1,)
            shape = (len(layers), *pages, *heads, part.row_bytes // part.element_bytes)
            tensors[part.name] = torch.zeros(shape, dtype=dtype, device=device)
        self.k_buffer = tensors["k"]
        self.v_buffer = tensors.get("v")
        self.index_k_buffer = tensors.get("index_k")
        self.index_k_scale_buffer = tensors.get("scale")

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensors there are, by component."""
        every = {
            "k": self.k_buffer,
            "v": self.v_buffer,
            "index_k": self.index_k_buffer,
            "scale": self.index_k_scale_buffer,
        }
        return {name: tensor for name, tensor in every.items() if tensor is not None}

    @property
    def planes(self) -> tuple[tuple[str, int], ...]:
        """(component, layer) of everything stored."""
        return tuple((name, layer) for name, layers in self._layers.items() for layer in layers)

    def plane(self, component: str, layer: int) -> torch.Tensor:
        """View the rows of one layer: uint8 (device_slots, row_bytes), no copy. ValueError when it is not stored."""
        _check_stored(self.planes, component, layer)
        tensor = self.tensors[component][self._layers[component].index(layer)]
        return tensor.view(self.geometry.device_slots, -1).view(torch.uint8)


DevicePool = MLATokenToKVPool | NPUMLATokenToKVPool


def _check_stored(planes: tuple[tuple[str, int], ...], component: str, layer: int) -> None:
    if (component, layer) not in planes:
        stored = ", ".join(f"{name} layer {at}" for name, at in planes)
        msg = f"component={component!r}, layer={layer} is not in this device pool, which stores {stored}"
        raise ValueError(msg)
