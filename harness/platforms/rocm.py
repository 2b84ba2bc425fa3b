"""AMD ROCm. PyTorch calls its devices `cuda` too; only `torch.version.hip` tells."""

from __future__ import annotations

from harness.platforms.base import Detection, Platform


def _detect() -> Detection:
    import torch  # noqa: PLC0415 - a second, and only when asked

    if torch.version.hip is None:
        return Detection(present=False, reason=f"torch {torch.__version__} is not a ROCm build")
    if not torch.cuda.is_available():
        return Detection(present=False, reason=f"torch {torch.__version__} finds no ROCm device")
    return Detection(present=True, reason=f"{torch.cuda.get_device_name(0)}, ROCm {torch.version.hip}")


ROCM = Platform("rocm", _detect)
