"""NVIDIA CUDA."""

from __future__ import annotations

from harness.platforms.base import Detection, Platform


def _detect() -> Detection:
    import torch  # noqa: PLC0415 - a second, and only when asked

    if torch.version.cuda is None:
        return Detection(present=False, reason=f"torch {torch.__version__} is not a CUDA build")
    if not torch.cuda.is_available():
        return Detection(present=False, reason=f"torch {torch.__version__} finds no CUDA device")
    return Detection(present=True, reason=f"{torch.cuda.get_device_name(0)}, CUDA {torch.version.cuda}")


CUDA = Platform("cuda", _detect)
