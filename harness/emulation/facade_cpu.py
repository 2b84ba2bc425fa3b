"""torch as it answers on a machine without an accelerator, and SGLang's own switch for its CPU engine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from harness.emulation.facade import HostRegistrations, no_accelerators


def install(device: Mapping[str, Any], registrations: HostRegistrations) -> str:
    """Make torch answer as on a CPU; returns the torch device that tensors are made on."""
    no_accelerators()
    os.environ["SGLANG_USE_CPU_ENGINE"] = "1"
    return "cpu"
