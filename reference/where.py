"""Answer "where is layer 2, slot 37, component index_k?" in one call."""

from __future__ import annotations

from typing import NamedTuple

from reference.geometry import PoolGeometry
from reference.layouts import host_layout


class Place(NamedTuple):
    """Where one row lies: at byte `offset` of its component's buffer, which is at index `at` of a tensor of `shape`."""

    component: str
    offset: int
    row_bytes: int
    at: tuple[int, ...]
    shape: tuple[int, ...]

    def __str__(self) -> str:
        at = ", ".join(map(str, self.at))
        return f"{self.component}[{at}] of {self.shape}: bytes {self.offset}..{self.offset + self.row_bytes}"


def where(layout: str, geometry: PoolGeometry, *, layer: int, slot: int, component: str = "latent") -> Place:
    """Return where a host row lies.

    `where("page_first_kv_split", geometry, layer=2, slot=37, component="index_k")` answers with the byte offset in the
    index_k buffer and the index into its tensor. Raises ValueError and IndexError as `HostLayout.offset` does.
    """
    laid = host_layout(layout, geometry)
    offset = laid.offset(component, layer, slot)
    at, rest = [], offset
    for stride in laid.strides(component)[:-1]:
        step, rest = divmod(rest, stride)
        at.append(step)
    return Place(component, offset, laid.item_size(component), tuple(at), laid.shape(component))
