"""Files that a user asked for: the place is checked before the run, the content is written whole after it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from harness.bundles.write import replace_file
from harness.errors import InfrastructureError, UsageError

STDOUT = "-"


def check_target(target: str | None, option: str = "--json") -> str | None:
    """Return the target where a file could be written there; UsageError otherwise. Creates nothing."""
    if target is None or target == STDOUT:
        return target
    path = Path(target)
    if path.is_dir() or not target:
        msg = f"{option} {target!r} is a folder; expected a file, or - for standard output; name a file in it"
        raise UsageError(msg)
    folder = path.absolute().parent
    if not folder.is_dir():
        msg = f"{option} {target!r}: there is no folder {str(folder)!r}; expected an existing one; create it first"
        raise UsageError(msg)
    if not os.access(folder, os.W_OK | os.X_OK):
        msg = f"{option} {target!r}: cannot write in {str(folder)!r}; expected a writable folder; name another file"
        raise UsageError(msg)
    return target


def write_text(target: str, text: str, option: str = "--json") -> None:
    """Write a file (whole or not at all), or standard output."""
    data = text.encode()
    if target == STDOUT:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    path = Path(target).resolve()
    try:
        if path.exists() and not path.is_file():  # a pipe or a device: written to, never replaced
            path.write_bytes(data)
        else:
            replace_file(path, data)
    except OSError as reason:
        msg = f"{option} {target!r}: {reason.strerror}; expected to write {len(data)} bytes; free space or move it"
        raise InfrastructureError(msg) from reason
