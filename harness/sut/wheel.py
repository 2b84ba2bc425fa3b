"""A release wheel as a container of sources: which files are taken, and that each is what the wheel says it is."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import zipfile
from pathlib import Path, PurePosixPath
from typing import Final

from harness.errors import InfrastructureError

# Python, kernel sources, and the small data that modules read while they load. Binaries and assets stay in the wheel.
SUFFIXES: Final = frozenset(
    {".py", ".pyi", ".cu", ".cuh", ".h", ".hpp", ".cc", ".cpp", ".inl", ".toml", ".json", ".txt", ".typed"}
)
_LARGEST_DATA: Final = 256 << 10
_CODE: Final = frozenset({".py", ".pyi", ".cu", ".cuh", ".h", ".hpp", ".cc", ".cpp", ".inl"})


def _wanted(info: zipfile.ZipInfo) -> bool:
    path = PurePosixPath(info.filename)
    if info.is_dir() or path.is_absolute() or ".." in path.parts:
        return False
    if path.parts[0].endswith(".dist-info"):
        return path.name in ("METADATA", "RECORD", "WHEEL")
    return path.suffix in SUFFIXES and (path.suffix in _CODE or info.file_size <= _LARGEST_DATA)


def _recorded_hashes(archive: zipfile.ZipFile) -> dict[str, str]:
    """Path -> urlsafe base64 sha256 without padding, as RECORD has it."""
    name = next((n for n in archive.namelist() if n.endswith(".dist-info/RECORD")), None)
    if name is None:
        msg = "the wheel has no RECORD; expected one hash for each file"
        raise zipfile.BadZipFile(msg)
    rows = csv.reader(io.TextIOWrapper(archive.open(name), "utf-8"))
    return {row[0]: row[1].removeprefix("sha256=") for row in rows if len(row) > 1 and row[1].startswith("sha256=")}


def unpack(wheel: Path, folder: Path) -> str:
    """Unpack the sources of a wheel into `folder` and return the wheel's sha256, hexadecimal.

    Raises InfrastructureError when the wheel is cut short or a file is not what RECORD says.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            recorded = _recorded_hashes(archive)
            for info in filter(_wanted, archive.infolist()):
                data = archive.read(info)
                _check(info.filename, data, recorded)
                target = folder / info.filename
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
    except (zipfile.BadZipFile, EOFError) as reason:
        msg = f"{wheel.name} is damaged ({reason}); expected a whole wheel; nothing was kept, so run the command again"
        raise InfrastructureError(msg) from reason
    with wheel.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check(name: str, data: bytes, recorded: dict[str, str]) -> None:
    if name not in recorded:
        return  # RECORD does not list itself
    found = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    if found != recorded[name]:
        msg = f"{name} has sha256 {found}; expected {recorded[name]}, as the wheel's RECORD says"
        raise zipfile.BadZipFile(msg)
