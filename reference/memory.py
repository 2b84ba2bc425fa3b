"""Host memory: the budget of a pool, and its buffers."""

from __future__ import annotations

from typing import Final

import torch

# What SGLang leaves to the rest of the host (FACTS.md section 1.3), in bytes.
RESERVE_BYTES: Final = 10 << 30
# Buffers start on a memory page, so that whether pages are aligned depends on their size alone.
_ALIGNMENT: Final = 4096


def host_memory_budget(available_bytes: int, ranks_per_host: int = 1, reserve_bytes: int = RESERVE_BYTES) -> int:
    """Bytes that a pool may take: this rank's share of what is available beyond the reserve (FACTS.md section 1.3)."""
    return max(available_bytes - reserve_bytes, 0) // ranks_per_host


def check_budget(requested_bytes: int, budget_bytes: int | None) -> None:
    """ValueError when a pool asks for more than the budget; None is no limit."""
    if budget_bytes is not None and requested_bytes > budget_bytes:
        msg = (
            f"Not enough host memory available: the pool takes requested_bytes={requested_bytes}, "
            f"budget_bytes={budget_bytes}; lower host_ratio or host_token_capacity"
        )
        raise ValueError(msg)


def allocate(nbytes: int) -> torch.Tensor:
    """Return a zeroed flat uint8 buffer that starts on a memory page."""
    room = torch.zeros(nbytes + _ALIGNMENT, dtype=torch.uint8)
    start = -room.data_ptr() % _ALIGNMENT
    return room[start : start + nbytes]
