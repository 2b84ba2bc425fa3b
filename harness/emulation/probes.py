"""Availability probes: `importlib.util.find_spec` and `importlib.metadata`, answered by who asks.

The SUT asks about the platform; transformers, torch or pytest ask about this machine. The caller is the frame that
calls the probe, so a helper of the SUT that is called by anybody is still the SUT asking.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from importlib.machinery import ModuleSpec

from packaging.utils import canonicalize_name

from harness.emulation.imports import ImportRules, PlatformFinder, Verdict, caller_name
from harness.emulation.loading import SUT_PACKAGE, is_sut
from harness.emulation.manifest import Manifest
from harness.errors import EmulationGap, StubCalled


class Probes:
    """The platform's answers to the SUT's probes."""

    def __init__(self, manifest: Manifest, rules: ImportRules, finder: PlatformFinder) -> None:
        self._manifest = manifest
        self._rules = rules
        self._finder = finder
        self._real_find_spec = importlib.util.find_spec
        self._real_version = importlib.metadata.version
        self._by_distribution = {package.distribution: name for name, package in manifest.packages.items()}
        self._by_distribution |= {package.distribution: name for name, package in manifest.vendor.items()}

    def install(self) -> None:
        """Replace the standard library's probes, for good: a cell is one process."""

        def find_spec(name: str, package: str | None = None) -> ModuleSpec | None:
            asks_platform = is_sut(caller_name(1)) and not name.startswith(".")
            return self.find_spec(name) if asks_platform else self.find_here(name, package)

        def version(distribution_name: str) -> str:
            return self.version(distribution_name) if is_sut(caller_name(1)) else self._real_version(distribution_name)

        importlib.util.find_spec = find_spec
        importlib.metadata.version = version

    def find_here(self, name: str, package: str | None) -> ModuleSpec | None:
        """Answer for this machine: a stand-in is not there."""
        top = name.partition(".")[0]
        if top and self._rules.verdict(top) is Verdict.STAND_IN:
            return None
        return self._real_find_spec(name, package)

    def find_spec(self, name: str) -> ModuleSpec | None:
        """Answer for the platform."""
        top, _, rest = name.partition(".")
        verdict = self._rules.verdict(top)
        if verdict is Verdict.REAL:
            return self._real_find_spec(name)
        if verdict is Verdict.ABSENT:
            return None
        if verdict is Verdict.STAND_IN and rest:
            return self._submodule(top, name)
        return self._finder.find_spec(name)

    def _submodule(self, top: str, name: str) -> ModuleSpec | None:
        package = self._manifest.packages[top]
        if name in package.submodules:
            return self._finder.find_spec(name)
        if self._rules.known_absent(name):
            return None
        msg = (
            f"the SUT asked whether {name} exists; {package.distribution} is part of the emulated install, this "
            f"machine has not got it, and packages.toml does not say; add {name!r} to its `submodules` or `absent`"
        )
        raise EmulationGap(msg)

    def version(self, distribution: str) -> str:
        """Answer `importlib.metadata.version` for the platform; PackageNotFoundError where it is not installed."""
        name = canonicalize_name(distribution)
        top = self._by_distribution.get(name)
        if name == SUT_PACKAGE and self._manifest.sut.version is not None:
            return self._manifest.sut.version
        if top is None:
            raise importlib.metadata.PackageNotFoundError(distribution)
        if top in self._manifest.vendor:
            return self._manifest.vendor[top].version
        if self._rules.verdict(top) is Verdict.REAL:
            return self._real_version(distribution)
        if name in self._manifest.sut.pins:
            return self._manifest.sut.pins[name]
        msg = (
            f"the SUT asked for the version of {distribution}: the emulated platform has it, this machine has not, and "
            f"the SUT pins none; install {distribution} here, or avoid that code in the case"
        )
        raise StubCalled(msg)
