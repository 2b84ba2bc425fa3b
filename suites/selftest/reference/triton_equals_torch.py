"""Run by test_kernels.py with TRITON_INTERPRET=1: both kernels on every layout, and on odd row widths."""

import sys

import torch

from reference import LAYOUTS, PoolGeometry, host_layout
from reference.kernels import torch_copy, triton_copy
from reference.kernels.planes import host_planes

TO, SOURCE = torch.tensor([11, 0, 5, 2]), torch.tensor([6, 4, 1, 7])


def equal(layout, dtype, kv_lora_rank):
    g = PoolGeometry(
        layers=2, kv_lora_rank=kv_lora_rank, qk_rope_head_dim=8, page_size=4, device_tokens=8, host_ratio=1, dtype=dtype
    )
    laid, moved = host_layout(layout, g), 0
    for part in laid.components:
        first, second = (torch.full((laid.nbytes(part.name),), 0xEE, dtype=torch.uint8) for _ in range(2))
        device = [torch.randint(0, 256, (3, 4, part.row_bytes), dtype=torch.uint8) for _ in part.layers]
        torch_copy.copy(host_planes(laid, first, part.name), TO, device, SOURCE)
        triton_copy.copy(host_planes(laid, second, part.name), TO, device, SOURCE)
        assert first.equal(second), (layout, dtype, part.name)
        moved += int((first != 0xEE).sum())
        back = [plane.clone() for plane in device]
        triton_copy.copy(back, SOURCE, host_planes(laid, second, part.name), TO)
        assert all(b.equal(d) for b, d in zip(back, device, strict=True))
    return moved > 0


# Rows of 64 and 32 bytes, of more than one block of words, and of a width that only bytes divide.
WIDTHS = (("bf16", 24), ("fp8_e4m3", 24), ("fp32", 520), ("fp8_e5m2", 5))

if __name__ == "__main__":
    cases = [(layout, *width) for layout in LAYOUTS for width in WIDTHS if (layout, width[1]) != ("page_unified", 5)]
    sys.stdout.write(f"{sum(equal(*case) for case in cases)} equal\n")
