"""torch as it answers on a machine without an accelerator, and SGLang's own switch for its CPU engine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from harness.emulation.facade import Facade, HostRegistrations, no_accelerators


def install(_device: Mapping[str, Any], _registrations: HostRegistrations) -> Facade:
    """Make torch answer as on a CPU."""
    no_accelerators()
    os.environ["SGLANG_USE_CPU_ENGINE"] = "1"
    return Facade()
