"""The platforms that poolparity knows, by name."""

from __future__ import annotations

from harness.errors import UsageError
from harness.platforms.ascend import ASCEND
from harness.platforms.base import Detection, Platform
from harness.platforms.cpu import CPU
from harness.platforms.cuda import CUDA
from harness.platforms.rocm import ROCM
from harness.platforms.xpu import XPU

__all__ = ["DEFAULT", "NAMES", "Detection", "Platform", "get"]

_ALL = {platform.name: platform for platform in (CUDA, ROCM, ASCEND, XPU, CPU)}
NAMES = tuple(_ALL)
DEFAULT = ("cuda", "rocm", "ascend")


def get(name: str) -> Platform:
    """Return the platform called `name`; raises UsageError that lists the known ones."""
    try:
        return _ALL[name]
    except KeyError:
        msg = f"unknown platform {name!r}; expected one of {', '.join(NAMES)}; give one of these to --platform"
        raise UsageError(msg) from None
