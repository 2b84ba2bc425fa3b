"""What `doctor` finds out: this machine, the cache, and for each platform how it would be run here."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from harness import platforms
from harness.bundles.manifest import Host
from harness.emulation import manifest, npu_device
from harness.emulation.imports import ImportRules, Verdict
from harness.emulation.npu_device.building import find_toolchain
from harness.emulation.stubs import StubLog
from harness.platforms import Detection, Platform


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


def examine(platform: Platform, sut_root: Path) -> PlatformReport:
    """Say how a platform would be run here; may import torch, and builds nothing."""
    found = platform.detect_native()
    device, device_reason = choose_device(platform, found)
    return PlatformReport(
        name=platform.name,
        title=platform.title,
        mode="native" if found.present else "emulated",
        reason=found.reason,
        device=device,
        device_reason=device_reason,
        packages=examine_packages(platform, sut_root),
    )


def choose_device(platform: Platform, found: Detection) -> tuple[str, str]:
    """Return the torch device that pools would be built on, and why."""
    if found.present:
        return platform.torch_device, "the hardware"
    if platform.name != "ascend":
        return "cpu", "CPU tensors stand in"
    if npu_device.available_without_building():
        return "npu", "a PyTorch device of our own, built and cached"
    tools = find_toolchain()
    if isinstance(tools, str):
        return "cpu", f"CPU tensors stand in for the npu device: {tools}"
    return "npu", f"a PyTorch device of our own, built on first use with {tools.compiler}"


def examine_packages(platform: Platform, sut_root: Path) -> Packages:
    """Sort the packages of a platform's install by what the SUT at `sut_root` would get for them on this machine."""
    facts = manifest.load(platform, sut_root)
    rules = ImportRules(facts, StubLog(), sys.meta_path)
    found: dict[Verdict, list[str]] = {verdict: [] for verdict in Verdict}
    for name in sorted({*facts.packages, *facts.vendor}):
        found[rules.verdict(name)].append(name)
    return Packages(found[Verdict.REAL], found[Verdict.VENDOR], found[Verdict.STAND_IN])


def examine_all(sut_root: Path) -> list[PlatformReport]:
    """Examine every platform."""
    return [examine(platforms.get(name), sut_root) for name in platforms.NAMES]
