"""Find a SUT: a string from the command line to a tree on disk. A tree is never edited; mutants are copies."""

from __future__ import annotations

from pathlib import Path

from harness.errors import UsageError
from harness.sut import cache as store
from harness.sut import checkout, pypi
from harness.sut.spec import PACKAGE, REFERENCE, SutTree

__all__ = ["SutTree", "cached_releases", "default_sut", "resolve"]


def resolve(sut: str, *, cache: Path | None = None, offline: bool = False) -> SutTree:
    """Return the tree of a SUT string: `sglang==X`, a path, `path@ref` or `reference`.

    Raises UsageError for what cannot be a SUT, InfrastructureError when it cannot be fetched or cached.
    """
    folder = cache or store.cache_dir()
    name = sut.strip()
    if not name:
        msg = "an empty SUT; expected sglang==X, a path to a checkout, path@ref or reference; name one"
        raise UsageError(msg)
    if name == REFERENCE:
        return SutTree(name=name, root=None, version=None, identity=REFERENCE)
    if name == PACKAGE and not Path(name).exists():
        return pypi.resolve_release(pypi.newest_on_index(folder), folder, offline=offline)
    if name.startswith(f"{PACKAGE}=="):
        return pypi.resolve_release(name, folder, offline=offline)
    path, at, ref = name.rpartition("@")
    if at and not Path(name).expanduser().exists():
        return checkout.resolve_ref(name, path, ref, folder)
    return checkout.resolve_path(name)


def cached_releases(cache: Path | None = None) -> list[str]:
    """Return the releases that work offline, oldest first, as `sglang==X`."""
    return [f"{PACKAGE}=={version}" for version in pypi.cached_releases(cache or store.cache_dir())]


def default_sut(cache: Path | None = None) -> str:
    """Return the newest release that works offline, else the newest that the index has."""
    folder = cache or store.cache_dir()
    cached = cached_releases(folder)
    return cached[-1] if cached else pypi.newest_on_index(folder)
