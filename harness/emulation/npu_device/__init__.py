"""The device `npu` for machines without one: a PrivateUse1 backend of PyTorch whose tensors live in CPU memory.

It is built from `npu_device.cpp` on first use, where a C++ compiler is found, and cached. Without a compiler the caller
builds pools on the CPU, and the report says so.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Final

from harness.emulation.npu_device.building import available_without_building, build_or_reason
from harness.errors import InfrastructureError

__all__ = ["DEVICE", "available_without_building", "build_or_reason", "is_loaded", "load"]

DEVICE: Final = "npu"

_loading = threading.Lock()
_loaded: list[Path] = []


def is_loaded() -> bool:
    """Whether this process has the device."""
    return bool(_loaded)


def load(path: Path) -> None:
    """Make `torch.device("npu")` real in this process, which may be a fork; a second call does nothing.

    The device module `torch.npu` is the caller's to provide: PyTorch looks for one when it first makes a tensor there.
    Raises InfrastructureError when the library does not load or PyTorch's PrivateUse1 slot has another name already.
    """
    import torch  # noqa: PLC0415 - nothing here needs torch before a device is asked for
    from torch.utils import backend_registration  # noqa: PLC0415 - as above

    with _loading:
        if _loaded:
            return
        try:
            backend_registration.rename_privateuse1_backend(DEVICE)
            torch.ops.load_library(str(path))  # type: ignore[no-untyped-call]
        except (OSError, RuntimeError) as error:
            msg = (
                f"cannot load the emulated device {DEVICE!r} from {path}: {error}; expected a library built for "
                f"torch {torch.__version__}; delete it to have it built again"
            )
            raise InfrastructureError(msg) from error
        backend_registration.generate_methods_for_privateuse1_backend(for_storage=True)
        _loaded.append(path)
