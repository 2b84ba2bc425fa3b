"""The one JSON object of `--json` (docs/contract.md): checked before the run, written whole after it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from harness.bundles.write import replace_file
from harness.errors import InfrastructureError, UsageError

SCHEMA = 1
STDOUT = "-"


def check_target(target: str | None) -> str | None:
    """Return the target where a file could be written there; UsageError otherwise. Creates nothing."""
    if target is None or target == STDOUT:
        return target
    path = Path(target)
    if path.is_dir() or not target:
        msg = f"--json {target!r} is a folder; expected a file, or - for standard output; name a file in it"
        raise UsageError(msg)
    folder = path.absolute().parent
    if not folder.is_dir():
        msg = f"--json {target!r}: there is no folder {str(folder)!r}; expected an existing one; create it first"
        raise UsageError(msg)
    if not os.access(folder, os.W_OK | os.X_OK):
        msg = f"--json {target!r}: cannot write in {str(folder)!r}; expected a writable folder; name another file"
        raise UsageError(msg)
    return target


def write_json(target: str, command: str, exit_code: int, fields: dict[str, Any]) -> None:
    """Write `{"schema", "command", "exit_code", **fields}` to a file (whole or not at all) or to standard output."""
    answer = {"schema": SCHEMA, "command": command, "exit_code": exit_code, **fields}
    data = msgspec.json.format(msgspec.json.encode(answer), indent=2) + b"\n"
    if target == STDOUT:
        sys.stdout.write(data.decode())
        sys.stdout.flush()
        return
    path = Path(target).resolve()
    try:
        if path.exists() and not path.is_file():  # a pipe or a device: written to, never replaced
            path.write_bytes(data)
        else:
            replace_file(path, data)
    except OSError as reason:
        msg = f"--json {target!r}: {reason.strerror}; expected to write {len(data)} bytes there; free space or move it"
        raise InfrastructureError(msg) from reason
