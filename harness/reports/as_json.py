"""The one JSON object of `--json` (docs/contract.md): checked before the run, written whole after it."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.reports.writing import STDOUT, check_target, write_text

__all__ = ["SCHEMA", "STDOUT", "check_target", "write_json"]

SCHEMA = 1


def write_json(target: str, command: str, exit_code: int, fields: dict[str, Any]) -> None:
    """Write `{"schema", "command", "exit_code", **fields}` to a file (whole or not at all) or to standard output."""
    answer = {"schema": SCHEMA, "command": command, "exit_code": exit_code, **fields}
    write_text(target, msgspec.json.format(msgspec.json.encode(answer), indent=2).decode() + "\n", "--json")
