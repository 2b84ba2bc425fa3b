"""What a platform's install of one SUT contains: third-party packages, and the vendor's modules name by name.

Data: `fixtures/platforms/<name>.toml` (what is installed on purpose), `packages.toml` (what that brings in turn) and
the symbol tables `sgl_kernel*.toml`; each says where it was read and when.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet

from harness.emulation.requirements import SutFacts, read_sut
from harness.platforms import Platform
from harness.platforms.base import read_table


@dataclass(frozen=True, slots=True)
class Package:
    """A top-level import name that the platform's install brings. `why` ends at a requirement or the image.

    `vendor`: it speaks to the accelerator. `usable`: where this machine has it, it may be used under emulation.
    `needs`: top-level names of the install without which it cannot be used as on the platform.
    """

    distribution: str
    why: str
    vendor: bool = False
    usable: bool = True
    needs: frozenset[str] = frozenset()
    submodules: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()
    markers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VendorModule:
    """The public names that one module of a vendor package binds on this platform and build."""

    name: str
    functions: tuple[str, ...]
    objects: tuple[str, ...]
    is_package: bool


@dataclass(frozen=True, slots=True)
class VendorPackage:
    """One build of a vendor package. `missing_ops`: wrapper -> torch op that this build does not register."""

    name: str
    distribution: str
    version: str
    modules: Mapping[str, VendorModule]
    eager: tuple[str, ...]
    missing_ops: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything that `install` needs to know of a platform for one SUT."""

    platform: Platform
    sut: SutFacts
    packages: Mapping[str, Package]
    vendor: Mapping[str, VendorPackage]

    @property
    def device(self) -> Mapping[str, Any]:
        """Properties of the accelerator that the facade shows."""
        table: Mapping[str, Any] = self.platform.data["device"]
        return table


def _import_names(distribution: str, entry: Mapping[str, Any]) -> Iterable[str]:
    names: list[str] = entry.get("imports", [distribution.replace("-", "_")])
    return names


def _needs(entry: Mapping[str, Any], graph: Mapping[str, Any]) -> frozenset[str]:
    needed = [*entry.get("requires", ()), *entry.get("companions", ())]
    return frozenset(name for other in needed for name in _import_names(other, graph.get(other, {})))


def close(direct: Mapping[str, str], graph: Mapping[str, Any]) -> dict[str, str]:
    """Return the distributions that `direct` (name -> why) brings with it, each with its reason, by breadth first."""
    reasons = dict(direct)
    queue = list(reasons)
    for name in queue:
        for required in graph.get(name, {}).get("requires", []):
            if required not in reasons:
                reasons[required] = f"{name} requires it; {reasons[name]}"
                queue.append(required)
    return reasons


def _packages(platform: Platform, facts: SutFacts) -> dict[str, Package]:
    install, image = platform.data["install"], platform.data["image"]
    graph = read_table("packages.toml")["distributions"]
    if facts.declared is None:
        direct = dict.fromkeys(install["direct"], f"listed in {install['source']}")
    else:
        direct = dict.fromkeys(sorted(facts.declared), f"listed in the SUT's own {facts.source}")
    direct |= dict.fromkeys(image["brings"], image["source"])
    alone = dict.fromkeys(image.get("brings_alone", ()), image["source"])
    packages: dict[str, Package] = {}
    for distribution, why in (close(direct, graph) | alone).items():
        entry = graph.get(distribution, {})
        for name in _import_names(distribution, entry):
            packages[name] = Package(
                distribution,
                why,
                vendor=bool(entry.get("vendor", False)),
                usable=not entry.get("vendor", False) or bool(entry.get("usable", False)),
                needs=_needs(entry, graph),
                submodules=frozenset(entry.get("submodules", ())),
                absent=frozenset(entry.get("absent", ())),
                markers=entry.get("markers", {}),
            )
    return packages


def _within(version: str, specifiers: str) -> bool:
    return not specifiers or SpecifierSet(specifiers).contains(version, prereleases=True)


def _matches(row: Mapping[str, Any], platform: str, version: str) -> bool:
    return platform in row.get("platforms", (platform,)) and _within(version, row.get("versions", ""))


def _module(name: str, entry: Mapping[str, Any], platform: str, version: str) -> VendorModule | None:
    if not _within(version, entry.get("versions", "")):
        return None
    conditional: dict[str, bool] = {}
    for row in entry.get("only", ()):
        for symbol in row["names"]:
            conditional[symbol] = conditional.get(symbol, False) or _matches(row, platform, version)
    kept = [
        tuple(symbol for symbol in entry.get(kind, ()) if conditional.get(symbol, True))
        for kind in ("functions", "objects")
    ]
    return VendorModule(name, kept[0], kept[1], bool(entry.get("is_package", False)))


def _build_version(entry: Mapping[str, Any], facts: SutFacts) -> str:
    pinned = facts.pins.get(entry["distribution"])
    if pinned is not None:
        return pinned
    rows: list[list[str]] = entry["versions"]
    known = facts.version
    return next((build for specifiers, build in rows if known is not None and _within(known, specifiers)), rows[-1][1])


def _vendor_package(name: str, entry: Mapping[str, Any], platform: str, facts: SutFacts) -> VendorPackage:
    table = read_table(entry["symbols"])
    version = _build_version(entry, facts)
    modules = {
        module: built
        for module, symbols in table["modules"].items()
        if (built := _module(module, symbols, platform, version)) is not None
    }
    missing = set(entry.get("missing_ops", ()))
    wrappers = {symbol for module in modules.values() for symbol in module.functions}
    ops = {wrapper: table.get("ops", {}).get(wrapper, wrapper) for wrapper in wrappers}
    missing_ops = {wrapper: op for wrapper, op in ops.items() if op in missing}
    return VendorPackage(name, entry["distribution"], version, modules, tuple(table["eager"]), missing_ops)


def load(platform: Platform, sut_root: Path) -> Manifest:
    """Read the platform's data for the SUT at `sut_root`; raises InfrastructureError when the data are broken."""
    install = platform.data["install"]
    facts = read_sut(sut_root, install["read_from"], install.get("extras", ()))
    vendor = {
        name: _vendor_package(name, entry, platform.name, facts)
        for name, entry in platform.data.get("vendor", {}).items()
    }
    return Manifest(platform, facts, _packages(platform, facts), vendor)
