"""What a process can ask of Linux: to die with its parent, to inherit orphans, limits, and the end of a whole tree."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h
_PR_SET_CHILD_SUBREAPER: Final = 36
_GRACE_S: Final = 3.0


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        msg = f"prctl({option}, {value}): {os.strerror(number)}"
        raise OSError(number, msg)


def die_with(parent: int, number: int = signal.SIGKILL) -> None:
    """Get the signal when the parent dies; end now when it did so already. `parent` is its pid, taken before the fork."""
    _prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(1)


def inherit_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, so that nothing escapes."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def default_signals() -> None:
    """Undo the signal handling that a fork inherited."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGUSR1):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def limit(memory_mb: int) -> None:
    """Forbid core dumps, and private memory beyond what the process has now plus `memory_mb` MiB (0: no limit)."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory_mb:
        ceiling = _private_bytes() + (memory_mb << 20)
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (ceiling if hard < 0 else min(ceiling, hard), hard))


def _private_bytes() -> int:
    # VmData of proc_pid_status(5), in kB, is what RLIMIT_DATA is held against (getrlimit(2), since Linux 4.7).
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) << 10
    return 0


def kill_group(leader: int) -> None:
    """Kill a process and its process group; a process that is gone already is no error."""
    for send in (os.kill, os.killpg):
        with suppress(ProcessLookupError, PermissionError):
            send(leader, signal.SIGKILL)


def kill_descendants() -> None:
    """Kill and reap everything below this process; gives up after some seconds on what does not die (state D)."""
    deadline = time.monotonic() + _GRACE_S
    while below := psutil.Process().children(recursive=True):
        for process in below:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        _reap()
        if time.monotonic() > deadline:
            return
        time.sleep(0.005)


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
