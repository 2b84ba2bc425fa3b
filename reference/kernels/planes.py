"""What the fast kernels move: planes, one a layer, uint8 (pages, page_size, row_bytes), strided as the layout has them.

A backup copies device planes to host planes, a load the other way round; target layers first, then the drafts.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from reference import checks
from reference.device_pool import DevicePool
from reference.layouts import HostLayout
from reference.transfer.indices import check_pair

Planes = Sequence[torch.Tensor]


def host_planes(layout: HostLayout, buffer: torch.Tensor, component: str) -> list[torch.Tensor]:
    """View a component's flat uint8 buffer layer by layer, no copy."""
    return [layout.rows(buffer, component, layer) for layer in layout.component(component).layers]


def device_planes(target: DevicePool, drafts: Sequence[DevicePool], component: str) -> list[torch.Tensor]:
    """View a component of the device pools layer by layer, no copy; drafts without such rows are left out."""
    page = target.geometry.page_size
    found = [pool.plane(*at) for pool in (target, *drafts) for at in pool.planes if at[0] == component]
    return [plane.view(-1, page, plane.shape[1]) for plane in found]


def check_planes(dst: Planes, dst_indices: torch.Tensor, src: Planes, src_indices: torch.Tensor) -> None:
    """Check one transfer: ValueError or IndexError naming the argument, its value and the bound."""
    checks.at_least("number of planes", len(dst), 1)
    checks.equal("number of source planes", len(src), len(dst), "one for each destination plane")
    for name, planes in (("dst", dst), ("src", src)):
        for number, plane in enumerate(planes):
            checks.equal(f"{name}[{number}].dtype", plane.dtype, torch.uint8, "planes are bytes")
            checks.equal(f"{name}[{number}].shape", plane.shape, planes[0].shape, f"the shape of {name}[0]")
            checks.equal(f"{name}[{number}].stride()", plane.stride(), planes[0].stride(), f"the strides of {name}[0]")
    checks.equal("page and row of dst", dst[0].shape[1:], src[0].shape[1:], "those of src")
    bounds = [planes[0].shape[0] * planes[0].shape[1] for planes in (dst, src)]
    check_pair("dst_indices", dst_indices, bounds[0], "src_indices", src_indices, bounds[1])
