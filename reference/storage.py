"""Storage pages: a page of every host layout as flat bytes, out and in, and where its pieces lie.

A storage page holds, component after component, that page of the component's buffer in the buffer's own order. So it
moves between pools of the same layout and geometry, and needs no copy where a page is one piece.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from reference import checks
from reference.layouts import HostLayout


class Piece(NamedTuple):
    """A contiguous run of bytes of a component's buffer."""

    component: str
    offset: int
    nbytes: int


class Region(NamedTuple):
    """A contiguous region to register for transfer: `item_bytes` is what one page takes in it."""

    component: str
    offset: int
    nbytes: int
    item_bytes: int


class StoragePages:
    """The storage pages of a layout's buffers: flat uint8 tensors by component."""

    def __init__(self, layout: HostLayout, buffers: dict[str, torch.Tensor]) -> None:
        self.layout = layout
        self.buffers = buffers

    @property
    def nbytes(self) -> int:
        """Bytes of one storage page."""
        return sum(self.layout.page_bytes(c.name) for c in self.layout.components)

    def pieces(self, page: int) -> list[Piece]:
        """Where a page lies: for each component one piece, or one for each layer where pages are not contiguous.

        Raises IndexError for a page outside the pool.
        """
        checks.index_below("page", page, self.layout.geometry.host_pages)
        first = page * self.layout.geometry.page_size
        found = []
        for part in self.layout.components:
            whole = self.layout.page_bytes(part.name)
            starts = [self.layout.offset(part.name, layer, first) for layer in part.layers]
            if self.layout.page_is_one_piece:
                found.append(Piece(part.name, starts[0], whole))
            else:
                found += [Piece(part.name, start, whole // len(starts)) for start in starts]
        return found

    def read(self, page: int) -> torch.Tensor:
        """Copy a page out: flat uint8."""
        return torch.cat([self.buffers[p.component][p.offset : p.offset + p.nbytes] for p in self.pieces(page)])

    def write(self, page: int, data: torch.Tensor) -> None:
        """Copy a page in. Raises ValueError when data is not a page of flat uint8; nothing is written then."""
        pieces = self.pieces(page)
        checks.equal("data_page.dtype", data.dtype, torch.uint8, "a storage page is bytes")
        checks.equal("data_page.shape", tuple(data.shape), (self.nbytes,), "the bytes of one storage page")
        start = 0
        for component, offset, nbytes in pieces:
            self.buffers[component][offset : offset + nbytes] = data[start : start + nbytes]
            start += nbytes

    def regions(self) -> list[Region]:
        """Contiguous regions that cover every buffer: one a layer in layer_first, else one a component."""
        found = []
        for part in self.layout.components:
            nbytes, page = self.layout.nbytes(part.name), self.layout.page_bytes(part.name)
            count = 1 if self.layout.page_is_one_piece else len(part.layers)
            step = nbytes // count
            found += [Region(part.name, i * step, step, page // count) for i in range(count)]
        return found

    def aligned(self, alignment: int) -> bool:
        """Whether every page is one piece a component that starts on a multiple of `alignment` bytes in memory.

        Raises ValueError unless alignment is positive.
        """
        checks.at_least("alignment", alignment, 1)
        names = [c.name for c in self.layout.components]
        return self.layout.page_is_one_piece and all(
            self.layout.page_bytes(name) % alignment == 0 and self.buffers[name].data_ptr() % alignment == 0
            for name in names
        )
