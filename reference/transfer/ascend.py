"""The Ascend dimension exchange: device (layers, pages, ...) <-> host (pages, layers, ...) (FACTS.md section 4.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import torch

from reference import checks
from reference.transfer.indices import check_pair, page_starts


class TransferDirection(IntEnum):
    """The values that transfer_kv_dim_exchange takes."""

    H2D = 1
    D2H = 2


@dataclass(frozen=True, slots=True)
class Exchange:
    """One component: device (layers, pages, page_size, heads, dim) and host (pages, layers, page_size, heads, dim).

    A device tensor may lack the heads axis, as the fp32 scale does.
    """

    name: str
    device: torch.Tensor
    host: torch.Tensor

    def bytes(self) -> tuple[torch.Tensor, torch.Tensor]:
        """View device and host as uint8 (layers, pages, page bytes), no copy.

        Raises ValueError when the two do not mirror each other.
        """
        device = self.device.unsqueeze(3) if self.device.dim() == 4 else self.device  # noqa: PLR2004 - no heads axis
        checks.equal(f"{self.name}: device dimensions", device.dim(), 5, "(layers, pages, page_size, heads, dim)")
        checks.equal(f"{self.name}: host dimensions", self.host.dim(), 5, "(pages, layers, page_size, heads, dim)")
        checks.equal(
            f"{self.name}: host layers", self.host.shape[1], device.shape[0], "the layers of the device tensor"
        )
        checks.equal(f"{self.name}: host row", self.host.shape[2:], device.shape[2:], "the device's (page, heads, dim)")
        checks.equal(f"{self.name}: host dtype", self.host.dtype, device.dtype, "the dtype of the device tensor")
        checks.equal(
            f"{self.name}: device contiguous", device.is_contiguous(), expected=True, why="one pitch per layer"
        )
        checks.equal(
            f"{self.name}: host page contiguous", self.host[0].is_contiguous(), expected=True, why="one pitch per page"
        )
        return device.flatten(2).view(torch.uint8), self.host.transpose(0, 1).flatten(2).view(torch.uint8)


def dim_exchange(
    parts: Sequence[Exchange],
    device_indices: torch.Tensor,
    host_indices: torch.Tensor,
    page_size: int,
    direction: TransferDirection,
) -> None:
    """transfer_kv_dim_exchange: page by page, all layers of k, v, index_k and scale.

    Indices are token slots of whole pages; the kernel reads the first of each page. Raises ValueError and IndexError
    naming the component or index at fault.
    """
    checks.at_least("number of components", len(parts), 1)
    views = [part.bytes() for part in parts]
    for part in parts:
        checks.equal(f"{part.name}: page size", part.device.shape[2], page_size, "page_size")
    device_slots = min(device.shape[1] for device, _ in views) * page_size
    host_slots = min(host.shape[1] for _, host in views) * page_size
    operands = ("host_indices", host_indices, host_slots), ("device_indices", device_indices, device_slots)
    dst, src = operands if direction is TransferDirection.D2H else operands[::-1]
    check_pair(*dst, *src)
    device_pages = page_starts("device_indices", device_indices, page_size) // page_size
    host_pages = page_starts("host_indices", host_indices, page_size) // page_size
    for device, host in views:
        if direction is TransferDirection.D2H:
            host[:, host_pages] = device[:, device_pages].to(host.device)
        else:
            device[:, device_pages] = host[:, host_pages].to(device.device)
