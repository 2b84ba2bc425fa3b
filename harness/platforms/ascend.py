"""Huawei Ascend: the torch device `npu`, which the package torch_npu adds."""

from __future__ import annotations

import importlib
from importlib.util import find_spec

from harness.platforms.base import Detection, Platform


def _detect() -> Detection:
    if find_spec("torch_npu") is None:
        return Detection(present=False, reason="the package torch_npu is not installed")
    import torch  # noqa: PLC0415 - a second, and only when asked

    try:
        importlib.import_module("torch_npu")
    except (ImportError, OSError, RuntimeError) as error:
        return Detection(present=False, reason=f"torch_npu is installed and does not load: {error}")
    npu = getattr(torch, "npu", None)
    if npu is None or not npu.is_available():
        return Detection(present=False, reason="torch_npu is installed and finds no device")
    return Detection(present=True, reason=str(npu.get_device_name(0)))


ASCEND = Platform("ascend", _detect)
