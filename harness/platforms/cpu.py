"""SGLang's CPU engine: native where the CPU build of the kernel package is installed."""

from __future__ import annotations

from harness.platforms.base import Detection, Platform


def _detect() -> Detection:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - a quarter of the time of --help

    for distribution in ("sglang-kernel-cpu", "sgl-kernel-cpu"):
        try:
            return Detection(present=True, reason=f"{distribution} {version(distribution)}")
        except PackageNotFoundError:
            continue
    return Detection(present=False, reason="the package sglang-kernel-cpu is not installed")


CPU = Platform("cpu", _detect)
