"""torch.compile on an emulated platform: functions run as they are written.

Nothing could be compiled for a device that is not here, and loading the compilers costs more than all cases of a cell.
What only a compiler would notice (graph breaks, errors while tracing) is therefore not seen; docs/fidelity.md says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def _as_written(function: Any = None, *_args: Any, **_options: Any) -> Any:
    """Return a function or module unchanged; called with options alone, a decorator that does so."""
    if function is None:
        return _unchanged
    return function


def _unchanged(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def install() -> None:
    """Put the stand-ins in the place of `torch.compile` and `torch.compiler.disable`, before the SUT is imported."""
    vars(torch)["compile"] = _as_written
    vars(torch.compiler)["disable"] = _as_written
