"""The `npu` device: built on first use."""

from __future__ import annotations

from pathlib import Path


def available_without_building() -> bool:
    """Whether a finished build lies in the cache."""
    raise NotImplementedError


def build_or_reason(cache: Path | None = None) -> Path | str:
    """Path of the shared library (built where needed), or the reason why there is none."""
    raise NotImplementedError


def load(path: Path) -> None:
    """Make `torch.device("npu")` real in this process; once per process, before or after a fork."""
    raise NotImplementedError
