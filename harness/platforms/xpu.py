"""Intel XPU."""

from __future__ import annotations

from harness.platforms.base import Detection, Platform


def _detect() -> Detection:
    import torch  # noqa: PLC0415 - a second, and only when asked

    if not torch.xpu.is_available():
        return Detection(present=False, reason=f"torch {torch.__version__} finds no XPU device")
    return Detection(present=True, reason=str(torch.xpu.get_device_name(0)))


XPU = Platform("xpu", _detect)
