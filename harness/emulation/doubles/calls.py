"""The record of which doubles ran, in order, and from which line of the SUT."""

from __future__ import annotations

import sys
from types import FrameType

from harness.emulation.loading import SUT_PACKAGE, is_sut

# SGLang's thin wrappers around its kernels: the line that matters is the one that called the wrapper.
_WRAPPERS = ("sglang.kernels.", "sglang.jit_kernel.")


class CallLog(list[str]):
    """Names of doubles, e.g. `jit.launch_one_mla`, `aot.transfer_kv_direct`, `ascend.transfer_kv_dim_exchange`.

    `sites` has, for each, `sglang/…/file.py:line` of the SUT's call, or "" when the SUT did not call.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sites: list[str] = []

    def append(self, name: str, /) -> None:
        """Record one call, and who made it."""
        super().append(name)
        self.sites.append(_sut_site())

    def clear(self) -> None:
        """Forget the calls so far."""
        super().clear()
        self.sites.clear()


def _sut_site() -> str:
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 - the caller's line is what is asked for
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if is_sut(module) and not module.startswith(_WRAPPERS):
            path = frame.f_code.co_filename
            return f"{path[path.rfind(f'/{SUT_PACKAGE}/') + 1 :]}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
