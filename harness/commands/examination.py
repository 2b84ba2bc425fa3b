"""What `doctor` finds out: this machine, the cache, and for each platform how it would be run here."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from harness import platforms
from harness.bundles.manifest import Host
from harness.emulation import manifest
from harness.emulation.imports import ImportRules, Verdict
from harness.emulation.stubs import StubLog


class Packages(msgspec.Struct, frozen=True):
    """The third-party packages that an install on the platform brings, by import name, sorted.

    `here`: this machine has them. `emulated`: the vendor's, for which there are doubles. `stubbed`: a stand-in would
    serve while modules load.
    """

    here: list[str]
    emulated: list[str]
    stubbed: list[str]


class PlatformReport(msgspec.Struct, frozen=True, kw_only=True):
    """How `--mode auto` would run a platform here, and why. `device` is the torch device that pools are built on."""

    name: str
    title: str
    mode: str
    reason: str
    device: str
    device_reason: str
    packages: Packages


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that `doctor` says."""

    versions: dict[str, str]
    host: Host
    cache: str
    releases: list[str]
    platforms: list[PlatformReport]


def examine_packages(platform: platforms.Platform, sut_root: Path) -> Packages:
    """Sort the packages of a platform's install by what the SUT at `sut_root` would get for them on this machine."""
    facts = manifest.load(platform, sut_root)
    rules = ImportRules(facts, StubLog(), sys.meta_path)
    found: dict[Verdict, list[str]] = {verdict: [] for verdict in Verdict}
    for name in sorted({*facts.packages, *facts.vendor}):
        found[rules.verdict(name)].append(name)
    return Packages(found[Verdict.REAL], found[Verdict.VENDOR], found[Verdict.STAND_IN])
