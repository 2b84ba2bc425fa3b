"""Writing a bundle: the manifest when the run starts, and once more when it ends."""

from __future__ import annotations

import os
import secrets
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from harness.bundles.manifest import FILE, Manifest, Status


def now() -> str:
    """Return the time as a manifest writes it: UTC, ISO 8601, whole seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def replace_file(path: Path, data: bytes) -> None:
    """Write `path` so that a reader sees the old content or the new, never a part; OSError leaves the old one."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write or replace `manifest.json`."""
    replace_file(folder / FILE, msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")


def close_manifest(folder: Path, manifest: Manifest, status: Status, exit_code: int | None) -> Manifest:
    """Replace the manifest by the one of a run that has ended, and return it."""
    closed = msgspec.structs.replace(manifest, status=status, ended=now(), exit_code=exit_code)
    write_manifest(folder, closed)
    return closed
