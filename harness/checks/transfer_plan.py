"""Which slots a transfer names: whole pages, scattered, in random order on either side."""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch

from harness.sut.drivers.port import PoolPair


@dataclass(frozen=True, slots=True)
class TransferPlan:
    """Host and device token slots of one transfer: int64 CPU tensors of equal length, page by page."""

    host: torch.Tensor
    device: torch.Tensor


def scattered(pair: PoolPair, seed: int, *, pages: int | None = None) -> TransferPlan:
    """Name about two thirds of the device's pages (or `pages`), the last one on either side and host page 0 always.

    Device page 0 is padding and is never named (FACTS.md section 3).
    """
    rng = random.Random(seed)  # noqa: S311 - repeatable choices, not secrets
    page_size = pair.geometry.page_size
    device_pages, host_pages = pair.device_slots // page_size, pair.host_slots // page_size
    count = pages if pages is not None else max(3, 2 * (device_pages - 1) // 3)
    return TransferPlan(
        _slots(_choose(rng, range(host_pages), count, (host_pages - 1, 0)), page_size),
        _slots(_choose(rng, range(1, device_pages), count, (device_pages - 1,)), page_size),
    )


def _choose(rng: random.Random, pages: range, count: int, always: tuple[int, ...]) -> list[int]:
    first = list(always[:count])
    rest = rng.sample([p for p in pages if p not in first], count - len(first))
    chosen = [*first, *rest]
    rng.shuffle(chosen)
    return chosen


def _slots(pages: list[int], page_size: int) -> torch.Tensor:
    starts = torch.tensor(pages, dtype=torch.int64)[:, None] * page_size
    return (starts + torch.arange(page_size)).reshape(-1)
