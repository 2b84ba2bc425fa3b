"""What a platform is: a name, a torch device, the io backends it has, and a way to find it on this machine.

The facts are data (`fixtures/platforms/<name>.toml`, each with its source); a platform's own file holds the little code
that differs, which is how to detect its hardware. Nothing here imports torch before it is asked to detect.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from harness.data import fixtures_dir
from harness.errors import InfrastructureError


@dataclass(frozen=True, slots=True)
class Detection:
    """Whether a platform's hardware and software are here, and how that was told."""

    present: bool
    reason: str


def read_table(file_name: str) -> Mapping[str, Any]:
    """Read one TOML file of `fixtures/platforms`; raises InfrastructureError when it is missing or broken."""
    path = fixtures_dir() / "platforms" / file_name
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        msg = f"cannot read the platform data {path}: {error}; reinstall poolparity, or restore the file"
        raise InfrastructureError(msg) from error


@dataclass(frozen=True)
class Platform:
    """One platform. `detect` looks for the real hardware and may import torch; it must not raise."""

    name: str
    detect: Callable[[], Detection]

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """The platform's file, as read."""
        return read_table(f"{self.name}.toml")

    @property
    def title(self) -> str:
        """The vendor's name for it."""
        return cast("str", self.data["platform"]["title"])

    @property
    def torch_device(self) -> str:
        """PyTorch's device type there: `cuda` (also on ROCm), `npu`, `xpu` or `cpu`."""
        return cast("str", self.data["platform"]["torch_device"])

    @property
    def io_backends(self) -> tuple[str, ...]:
        """The io backends that can work there, the server's default first."""
        return tuple(self.data["platform"]["io_backends"])

    @property
    def default_io_backend(self) -> str:
        """The server's io backend there; empty where there is none."""
        return cast("str", self.data["platform"]["default_io_backend"])

    @property
    def default_layout(self) -> str:
        """The server's host layout for MLA there; empty where there is none."""
        return cast("str", self.data["platform"]["default_layout"])

    def detect_native(self) -> Detection:
        """Say whether this machine is that platform."""
        return self.detect()
