"""Make this process look like a platform before SGLang is imported. See docs/fidelity.md for what that cannot show."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final

import platformdirs

from harness import platforms
from harness.emulation import facade_compile, manifest
from harness.emulation.doubles import CallLog, ascend_kvcacheio_module, jit_loader, kvcacheio_functions
from harness.emulation.facade import Facade, HostRegistrations
from harness.emulation.facade_triton import driver_for, set_driver
from harness.emulation.imports import ImportRules, PlatformFinder, Verdict, guard_imports
from harness.emulation.loading import SUT_PACKAGE, SutFinder
from harness.emulation.memory import AddressSpace
from harness.emulation.probes import Probes
from harness.emulation.seams import replace_load_jit, skip_transformers_patches
from harness.emulation.stubs import StubLog
from harness.emulation.vendor import Doubles, VendorLoader
from harness.errors import InfrastructureError

__all__ = ["Emulation", "install"]

_SGLANG_SWITCHES: Final = ("SGLANG_PLATFORM", "SGLANG_USE_CPU_ENGINE")


@dataclass
class Emulation:
    """What was done to this process.

    `device`: the torch device that pools are built on. `note`: what a report should say of it, or nothing.
    """

    platform: str
    device: str
    note: str
    memory: AddressSpace
    stubs: StubLog
    manifest: manifest.Manifest
    registrations: HostRegistrations
    _calls: CallLog

    def modules_loaded(self) -> None:
        """End the import phase. Stand-ins are strict already: they serve only while a SUT module is being executed."""
        self._calls.clear()

    def calls(self) -> list[str]:
        """Names of the doubles called since the last reset, in order."""
        return list(self._calls)

    def call_sites(self) -> list[str]:
        """Where in the SUT those calls were made, `sglang/…/file.py:line`, each once, in order."""
        return [site for site in dict.fromkeys(self._calls.sites) if site]

    def reset_calls(self) -> None:
        """Forget the calls so far."""
        self._calls.clear()


def bytecode_folder() -> Path:
    """Where the SUTs' bytecode is cached: below POOLPARITY_CACHE, or the user's cache folder."""
    base = os.environ.get("POOLPARITY_CACHE") or platformdirs.user_cache_dir("poolparity")
    return Path(base) / "bytecode"


def _refuse_late_install(facts: manifest.Manifest) -> None:
    vendors = [name for name, package in facts.packages.items() if not package.usable]
    loaded = sorted({name for name in (SUT_PACKAGE, *facts.vendor, *vendors) if name in sys.modules})
    if loaded:
        msg = (
            f"emulation must come before the SUT and the vendor's packages; {', '.join(loaded)} is imported already; "
            "start a fresh process (with TORCH_DEVICE_BACKEND_AUTOLOAD=0 where torch loads torch_npu by itself)"
        )
        raise InfrastructureError(msg)


def _bare_package(root: Path, version: str | None) -> None:
    """Stand in for `sglang/__init__.py`, which pulls in the front end and transformers; the pools need neither."""
    package = ModuleType(SUT_PACKAGE)
    package.__path__ = [str(root / SUT_PACKAGE)]
    package.__spec__ = ModuleSpec(SUT_PACKAGE, None, is_package=True)
    package.__spec__.submodule_search_locations = package.__path__
    vars(package)["__version__"] = version or "0"
    sys.modules[SUT_PACKAGE] = package


def _facade(platform: str, device: Mapping[str, Any], registrations: HostRegistrations) -> Facade:
    facade: Facade = importlib.import_module(f"harness.emulation.facade_{platform}").install(device, registrations)
    return facade


def _doubles(facts: manifest.Manifest, memory: AddressSpace, calls: CallLog) -> dict[str, Doubles]:
    """Vendor module -> its doubles."""
    if "sgl_kernel_npu" in facts.vendor:
        build = facts.vendor["sgl_kernel_npu"].version
        return {"sgl_kernel_npu.kvcacheio": vars(ascend_kvcacheio_module(memory, calls, build))}
    if facts.platform.io_backends:
        return {"sgl_kernel.kvcacheio": kvcacheio_functions(facts.platform.name, memory, calls)}
    return {}


def install(platform: str, sut_root: Path, *, bare: bool = True) -> Emulation:
    """Make this process look like `platform` for the SUT whose `sglang/` folder is in `sut_root`.

    Once per process. `bare` leaves out `sglang/__init__.py`. Raises UsageError for an unknown platform and
    InfrastructureError when the SUT or a vendor package is imported already.
    """
    sut_root = sut_root.resolve()
    facts = manifest.load(platforms.get(platform), sut_root)
    _refuse_late_install(facts)
    memory, log, registrations = AddressSpace(), StubLog(), HostRegistrations()
    calls = CallLog()
    for switch in _SGLANG_SWITCHES:
        os.environ.pop(switch, None)
    facade_compile.install()
    facade = _facade(platform, facts.device, registrations)
    rules = ImportRules(facts, log, sys.meta_path)
    module_doubles = _doubles(facts, memory, calls)
    vendor = {name: VendorLoader(package, module_doubles, log) for name, package in facts.vendor.items()}
    driver = driver_for(facts.device, facade.device)
    if rules.verdict("triton") is Verdict.REAL:
        set_driver(driver)
    answers = {"triton.runtime": {"driver": SimpleNamespace(active=driver)}, **facade.answers}
    finder = PlatformFinder(rules, vendor, answers)
    sut_finder = SutFinder(sut_root, bytecode_folder())
    sut_finder.after_exec(replace_load_jit(jit_loader(platform, memory, calls)))
    if rules.verdict("transformers") is Verdict.STAND_IN:
        sut_finder.after_exec(skip_transformers_patches)
    sys.meta_path[:0] = [sut_finder, finder]
    guard_imports(rules)
    Probes(facts, rules, finder).install()
    sys.path.insert(0, str(sut_root))
    if bare:
        _bare_package(sut_root, facts.sut.version)
    return Emulation(platform, facade.device, facade.note, memory, log, facts, registrations, calls)
