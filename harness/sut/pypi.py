"""Release wheels, without dependencies, fetched by pip: it brings the user's own index, proxy and certificates."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from packaging.version import InvalidVersion, Version

from harness.errors import InfrastructureError, UsageError
from harness.sut import cache as store
from harness.sut.spec import PACKAGE, SutTree
from harness.sut.wheel import unpack

# Any tag will do, since only sources are taken: this machine's first, then those that releases have been built for.
_PYTHONS: Final = ("3.11", "3.12", "3.10", "3.13", "3.14")
_PLATFORMS: Final = ("manylinux_2_34", "manylinux_2_28", "manylinux_2_24", "manylinux2014", "linux")
_MACHINES: Final = ("x86_64", "aarch64")
_QUICK: Final = ("--retries", "1", "--timeout", "20")
_FROM_VERSIONS: Final = re.compile(r"from versions: ([^)]*)\)")
_SHOWN: Final = 6


def parse_release(text: str) -> Version:
    """Return the version of `sglang==X`; UsageError when X is none."""
    version = text.removeprefix(PACKAGE).removeprefix("==")
    try:
        return Version(version)
    except InvalidVersion as reason:
        msg = f"{text!r}: {version!r} is no version; expected something like sglang==0.5.19; check the spelling"
        raise UsageError(msg) from reason


def resolve_release(name: str, cache: Path, *, offline: bool = False) -> SutTree:
    """Return the tree of `sglang==X`, from the cache or from the index.

    Raises UsageError for a release that the index does not have, InfrastructureError when there is no index or no room.
    """
    version = parse_release(name)

    def fill(folder: Path) -> tuple[str, str]:
        if offline:
            why = "no network is to be used"
            raise _unreachable(str(version), cache, why)
        with tempfile.TemporaryDirectory(prefix="wheel-", dir=store.trees(cache)) as download:
            wheel = fetch(f"{PACKAGE}=={version}", Path(download), cache)
            return f"{PACKAGE}-{version} sha256:{unpack(wheel, folder)}", str(version)

    root, marker = store.publish(cache, f"{PACKAGE}-{version}", fill)
    return SutTree(name=name, root=root, version=str(version), identity=marker.identity)


def cached_releases(cache: Path) -> list[Version]:
    """Return the releases that work offline, oldest first."""
    folder = store.trees(cache)
    names = [p.name.removeprefix(f"{PACKAGE}-") for p in folder.glob(f"{PACKAGE}-*") if store.verified(p) is not None]
    return sorted(Version(name) for name in names)


def newest_on_index(cache: Path) -> str:
    """Return the newest release that the index offers, as `sglang==X`; raises as `resolve_release` does."""
    ran = _pip("index", "versions", PACKAGE, *_QUICK)
    found = re.search(r"\(([^)]+)\)", ran.stdout)
    if ran.returncode or found is None:
        newest = "the newest release"
        raise _unreachable(newest, cache, _last_line(ran.stderr))
    return f"{PACKAGE}=={found[1]}"


def releases_on_index() -> list[Version]:
    """Return the releases that the index offers, oldest first; none where it cannot be reached."""
    ran = _pip("index", "versions", PACKAGE, *_QUICK)
    listed = re.search(r"Available versions: (.+)", ran.stdout)
    return sorted(Version(text.strip()) for text in listed[1].split(",")) if listed else []


def fetch(requirement: str, folder: Path, cache: Path) -> Path:
    """Download one wheel into `folder` and return its path."""
    complaints = []
    for tags in _tag_choices():
        ran = _pip("download", "--no-deps", "--only-binary=:all:", *_QUICK, *tags, "--dest", str(folder), requirement)
        if ran.returncode == 0:
            return next(folder.glob("*.whl"))
        complaints.append(ran.stderr)
        if "No space left" in ran.stderr:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if not _is_about_tags(ran.stderr):
            break
    raise _refused(requirement, complaints, cache)


def _tag_choices() -> Iterator[Sequence[str]]:
    yield ()
    platforms = [f"{platform}_{machine}" for machine in _MACHINES for platform in _PLATFORMS]
    for python in _PYTHONS:
        abi = f"cp{python.replace('.', '')}"
        yield (
            *("--python-version", python, "--implementation", "cp", "--abi", abi, "--abi", "abi3", "--abi", "none"),
            *(part for platform in platforms for part in ("--platform", platform)),
        )


def _is_about_tags(stderr: str) -> bool:
    """Whether another tag might help: pip saw an index, and nothing of that version that suits the tag."""
    return "No matching distribution" in stderr and not _looks_offline(stderr)


def _looks_offline(stderr: str) -> bool:
    signs = (
        "NewConnectionError",
        "ConnectTimeout",
        "NameResolutionError",
        "Max retries",
        "ProxyError",
        "Connection refused",
    )
    return any(sign in stderr for sign in signs)


def _refused(requirement: str, complaints: list[str], cache: Path) -> UsageError | InfrastructureError:
    versions = _known_versions("\n".join(complaints))
    if any(_looks_offline(text) for text in complaints) or not versions:
        return _unreachable(requirement, cache, _last_line(complaints[-1]))
    msg = (
        f"there is no release {requirement}; the index has {', '.join(map(str, versions[-_SHOWN:]))} as its newest; "
        "choose one of its releases, or name a checkout"
    )
    return UsageError(msg)


def _known_versions(text: str) -> list[Version]:
    listed = {part.strip() for found in _FROM_VERSIONS.findall(text) for part in found.split(",")}
    return sorted(Version(v) for v in listed if v and v != "none" and re.match(r"\d", v))


def _unreachable(what: str, cache: Path, why: str) -> InfrastructureError:
    have = ", ".join(f"{PACKAGE}=={v}" for v in cached_releases(cache)) or "no release at all"
    msg = (
        f"cannot fetch {what}: {why}; expected a package index that pip can reach; "
        f"check the network and pip's settings, or use what is cached here: {have}"
    )
    return InfrastructureError(msg)


def _pip(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", *arguments, "--disable-pip-version-check", "--no-input", "--no-color"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _last_line(stderr: str) -> str:
    lines = [line for line in stderr.strip().splitlines() if line.strip()]
    return lines[-1].removeprefix("ERROR: ") if lines else "pip said nothing"
