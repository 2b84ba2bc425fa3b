"""The manifest of a bundle: what was run, with what, where. Outcomes are not here but in the cells' event files."""

from __future__ import annotations

import os
import platform as host_platform
from importlib import metadata
from typing import Literal

import msgspec
import psutil

from harness import __version__

SCHEMA = 1
FILE = "manifest.json"

Status = Literal["running", "complete", "interrupted"]


class SutRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One SUT as it was resolved: `name` is what the user wrote, `identity` says which bytes were judged."""

    name: str
    version: str | None
    identity: str


class CellRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One cell: its folder under `cells/`, and what it was asked for. The mode it got is in its events."""

    folder: str
    sut: str
    platform: str
    mode: str


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """The machine, as far as it explains a result. No host or user name: bundles are shared."""

    system: str
    machine: str
    cores: int
    memory_mb: int


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """`manifest.json`. Times are UTC, ISO 8601. `exit_code` is None until the run is complete."""

    schema: int = SCHEMA
    status: Status = "running"
    command: list[str]
    started: str
    ended: str | None = None
    exit_code: int | None = None
    mode: str
    platforms: list[str]
    suites: list[str]
    keyword: str
    seed: int
    case_timeout_s: float | None
    suts: list[SutRecord]
    cells: list[CellRecord]
    versions: dict[str, str]
    host: Host


def host_facts() -> Host:
    """Read the facts of this machine; memory is MiB of physical memory, cores are those that this process may use."""
    return Host(
        system=host_platform.platform(),
        machine=host_platform.machine(),
        cores=len(os.sched_getaffinity(0)),
        memory_mb=psutil.virtual_memory().total >> 20,
    )


def versions() -> dict[str, str]:
    """Return the versions that explain a result, from package metadata (nothing is imported for it)."""
    found = {"python": host_platform.python_version(), "poolparity": __version__}
    for name in ("torch", "numpy", "pytest"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "absent"
    return found
