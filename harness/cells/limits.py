"""What binds a cell's process: it dies with its server, writes no core, and may not take all memory (Linux)."""

from __future__ import annotations

import ctypes
import os
import resource
import signal

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), f"prctl({option})")


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the one that forked it ends; `parent`: its pid, taken before the fork."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before we could ask
        os._exit(0)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that none escapes a clean-up."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def limit_memory(mebibytes: int) -> None:
    """Bound this process's private data: beyond it an allocation fails instead of the machine."""
    resource.setrlimit(resource.RLIMIT_DATA, (mebibytes << 20, mebibytes << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
