"""Every host layout as one address function: (component, layer, slot) -> byte offset in that component's buffer.

A layout is the order of its axes, outermost first. The address of a row is its row-major position over those axes;
shapes, strides, `item_size`, `layout_dim` and page addresses are all derived from that, and from nothing else.
The order of the axes of each layout is FACTS.md section 2.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import torch

from reference import checks
from reference.geometry import Component, PoolGeometry

# Axes: `layer`; `slot` (a token of the whole pool); `page` and `row` (a token within its page); `head` is always 1.
_AXES: Final[dict[str, tuple[str, ...]]] = {
    "layer_first": ("layer", "slot", "head"),
    "page_first": ("slot", "layer", "head"),
    "page_first_direct": ("page", "layer", "row", "head"),
    "page_first_kv_split": ("page", "layer", "row", "head"),
    "page_unified": ("page", "layer", "row"),
}
_SPLIT: Final = ("page_first_kv_split",)
# The page_unified kernels move 16-byte vectors (FACTS.md section 2.1).
_UNIFIED_ALIGNMENT: Final = 16

LAYOUTS: Final = tuple(_AXES)


class Plane(NamedTuple):
    """Where the rows of one layer lie, in bytes: pages are `page_stride` apart, the rows of a page `slot_stride`.

    Row `slot` is at `offset + slot // page_size * page_stride + slot % page_size * slot_stride`.
    """

    offset: int
    page_stride: int
    slot_stride: int
    row_bytes: int
    pages: int
    page_size: int


@dataclass(frozen=True, slots=True)
class HostLayout:
    """One layout of one geometry. `components` are its buffers, in the pool's order."""

    name: str
    geometry: PoolGeometry
    components: tuple[Component, ...]

    def component(self, name: str) -> Component:
        """Return a component by name; ValueError naming the ones there are."""
        for component in self.components:
            if component.name == name:
                return component
        known = ", ".join(c.name for c in self.components)
        msg = f"component={name!r} is not in layout {self.name}, which has {known}"
        raise ValueError(msg)

    def offset(self, component: str, layer: int, slot: int) -> int:
        """Byte offset of a row in its component's buffer: the address function.

        Raises ValueError for an unknown component or a layer without such rows, IndexError for a slot outside the pool.
        """
        part = self.component(component)
        checks.index_below("slot", slot, self.geometry.host_slots)
        page, row = divmod(slot, self.geometry.page_size)
        at = {"layer": self._position(part, layer), "slot": slot, "page": page, "row": row, "head": 0}
        rows = 0
        for axis, extent in self._extents(part):
            rows = rows * extent + at[axis]
        return rows * part.row_bytes

    def _position(self, part: Component, layer: int) -> int:
        """Position of a layer among the layers that have such rows."""
        if layer not in part.layers:
            msg = f"layer={layer} has no {part.name} rows in layout {self.name}; layers with them: {part.layers}"
            raise ValueError(msg)
        return part.layers.index(layer)

    def _extents(self, part: Component) -> list[tuple[str, int]]:
        g = self.geometry
        sizes = {
            "layer": len(part.layers),
            "slot": g.host_slots,
            "page": g.host_pages,
            "row": g.page_size,
            "head": 1,
        }
        return [(axis, sizes[axis]) for axis in _AXES[self.name]]

    def shape(self, component: str) -> tuple[int, ...]:
        """Shape of a component's buffer in elements, as the pool's tensor has it."""
        part = self.component(component)
        return (*(extent for _, extent in self._extents(part)), part.row_bytes // part.element_bytes)

    def strides(self, component: str) -> tuple[int, ...]:
        """Strides of a component's buffer in bytes, one for each axis of `shape`."""
        step, strides = self.component(component).element_bytes, []
        for extent in reversed(self.shape(component)):
            strides.append(step)
            step *= extent
        return tuple(reversed(strides))

    def nbytes(self, component: str) -> int:
        """Bytes of a component's buffer."""
        part = self.component(component)
        return part.row_bytes * len(part.layers) * self.geometry.host_slots

    def item_size(self, component: str) -> int:
        """Bytes of one row of one layer: what transfer kernels call `item_size`."""
        return self.component(component).row_bytes

    def layout_dim(self, component: str) -> int:
        """Bytes of one token over all layers: what transfer kernels call `layout_dim` (FACTS.md section 2.2)."""
        part = self.component(component)
        return part.row_bytes * len(part.layers)

    def page_bytes(self, component: str) -> int:
        """Bytes of one page over all layers."""
        return self.layout_dim(component) * self.geometry.page_size

    @property
    def page_is_one_piece(self) -> bool:
        """Whether a page of all layers is contiguous: true of every layout whose outermost axis is not the layer."""
        return _AXES[self.name][0] != "layer"

    def plane(self, component: str, layer: int) -> Plane:
        """The affine form of `offset` for one layer. Raises as `offset` does."""
        part, g = self.component(component), self.geometry
        first = self.offset(component, layer, 0)
        # A stride over an axis of one step is never taken; the row's width keeps it valid.
        slot_stride = self.offset(component, layer, 1) - first if g.page_size > 1 else part.row_bytes
        page_stride = self.offset(component, layer, g.page_size) - first if g.host_pages > 1 else part.row_bytes
        return Plane(first, page_stride, slot_stride, part.row_bytes, g.host_pages, g.page_size)

    def rows(self, buffer: torch.Tensor, component: str, layer: int) -> torch.Tensor:
        """View the rows of one layer in a flat uint8 buffer: uint8 (pages, page_size, row_bytes), no copy.

        Raises ValueError when the buffer is not the component's flat uint8 buffer.
        """
        checks.equal("buffer.dtype", buffer.dtype, torch.uint8, "rows are bytes")
        checks.equal("buffer.shape", tuple(buffer.shape), (self.nbytes(component),), f"the {component} buffer, flat")
        checks.equal("buffer.stride()", buffer.stride(), (1,), "rows are addressed by byte")
        p = self.plane(component, layer)
        return buffer.as_strided(
            (p.pages, p.page_size, p.row_bytes),
            (p.page_stride, p.slot_stride, 1),
            buffer.storage_offset() + p.offset,
        )


def host_layout(name: str, geometry: PoolGeometry) -> HostLayout:
    """Return a layout of a geometry; ValueError for an unknown layout or one that cannot hold the geometry."""
    if name not in _AXES:
        msg = f"Unsupported layout: layout={name!r}; expected one of {', '.join(LAYOUTS)}"
        raise ValueError(msg)
    if name == "page_unified":
        checks.multiple_of(
            "latent_row_bytes", geometry.latent_row_bytes, _UNIFIED_ALIGNMENT, "page_unified moves 16-byte vectors"
        )
    return HostLayout(name, geometry, geometry.components(split=name in _SPLIT))
