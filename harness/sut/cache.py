"""The cache of unpacked trees: published whole or not at all, verified on use, repaired when damaged.

    <cache>/trees/sglang-0.5.19/            the tree; `sglang/` in it goes on sys.path
    <cache>/trees/sglang-0.5.19/.poolparity.json   its files with size and time, and the wheel's hash
    <cache>/locks/…                         one lock a tree

`POOLPARITY_CACHE` names another folder than the user's cache folder.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock
import msgspec
import platformdirs

from harness.errors import InfrastructureError

MARKER = ".poolparity.json"
_LOCK_TIMEOUT_S = 600


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One file of a tree: path inside it, bytes, modification time in nanoseconds."""

    path: str
    size: int
    mtime_ns: int


class Marker(msgspec.Struct, frozen=True, kw_only=True):
    """What a published tree says of itself."""

    identity: str
    version: str | None
    files: list[Entry]


def cache_dir() -> Path:
    """Return the cache folder; nothing is created."""
    named = os.environ.get("POOLPARITY_CACHE")
    return Path(named) if named else Path(platformdirs.user_cache_dir("poolparity"))


def trees(cache: Path) -> Path:
    """Return the folder of the published trees."""
    return cache / "trees"


def read_marker(tree: Path) -> Marker | None:
    """Return the marker of a tree, or None when there is none that can be read."""
    try:
        return msgspec.json.decode((tree / MARKER).read_bytes(), type=Marker)
    except (OSError, msgspec.MsgspecError):
        return None


def verified(tree: Path) -> Marker | None:
    """Return the marker of a tree whose files are all there and unchanged (size and time), else None."""
    marker = read_marker(tree)
    if marker is None or not marker.files:
        return None
    for entry in marker.files:
        try:
            found = os.stat(f"{tree}/{entry.path}")  # noqa: PTH116 - thousands of files, each time
        except OSError:
            return None
        if (found.st_size, found.st_mtime_ns) != (entry.size, entry.mtime_ns):
            return None
    return marker


def publish(cache: Path, name: str, fill: Callable[[Path], tuple[str, str | None]]) -> tuple[Path, Marker]:
    """Return the tree `name` and its marker; `fill(folder)` makes it when it is not there or is damaged.

    `fill` returns (identity, version). Whatever it raises leaves nothing behind. Raises InfrastructureError when the
    cache cannot be written.
    """
    tree = trees(cache) / name
    if (marker := verified(tree)) is not None:
        return tree, marker
    with _writing(cache), _lock(cache, name):
        if (marker := verified(tree)) is not None:
            return tree, marker
        trees(cache).mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=trees(cache)))
        try:
            identity, version = fill(part)
            marker = Marker(identity=identity, version=version, files=sorted(_entries(part), key=lambda e: e.path))
            (part / MARKER).write_bytes(msgspec.json.encode(marker))
            if tree.exists():
                shutil.rmtree(tree)
            part.rename(tree)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return tree, marker


def _entries(folder: Path) -> Iterator[Entry]:
    for base, _, names in os.walk(folder):
        for name in names:
            path = Path(base) / name
            found = path.stat()
            yield Entry(str(path.relative_to(folder)), found.st_size, found.st_mtime_ns)


@contextmanager
def _lock(cache: Path, name: str) -> Iterator[None]:
    (cache / "locks").mkdir(parents=True, exist_ok=True)
    try:
        with filelock.FileLock(cache / "locks" / f"{name}.lock", timeout=_LOCK_TIMEOUT_S):
            yield
    except filelock.Timeout as reason:
        msg = (
            f"another process has been unpacking {name} into {cache} for {_LOCK_TIMEOUT_S} s; "
            "expected it to end; end it and try again"
        )
        raise InfrastructureError(msg) from reason


@contextmanager
def _writing(cache: Path) -> Iterator[None]:
    try:
        yield
    except OSError as reason:
        msg = (
            f"cannot write the cache {cache}: {reason.strerror or reason}; "
            "expected a writable folder with some 100 MB free; make room, or set POOLPARITY_CACHE to another folder"
        )
        raise InfrastructureError(msg) from reason
