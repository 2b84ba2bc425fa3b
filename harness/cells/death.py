"""How a process ended, in words."""

from __future__ import annotations

import os
import signal


def describe(status: int) -> str:
    """Describe a wait status: `died of SIGSEGV (signal 11)`, `exited with code 3 (os._exit, or the interpreter ended)`."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"exited with code {code} (os._exit, or the interpreter ended)"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "a signal"
    hint = ", perhaps by the kernel because memory ran out" if name == "SIGKILL" else ""
    return f"died of {name} (signal {-code}{hint})"
