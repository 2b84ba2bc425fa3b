"""Who may import what: the platform's packages for the SUT, this machine's packages for everybody else.

Python asks a finder only for modules that are not loaded yet, so a finder alone cannot keep apart what the SUT may see
and what torch or pytest loaded before it. The rules therefore stand where the importer is known: in `__import__` and in
`importlib.import_module`. The finder only builds what the rules let through.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final, cast

from harness.emulation.loading import SUT_PACKAGE, is_sut
from harness.emulation.manifest import Manifest
from harness.emulation.stubs import Origin, StubLog, StubModule
from harness.emulation.vendor import VendorLoader

_NEVER_JUDGED: Final = frozenset({*sys.stdlib_module_names, SUT_PACKAGE, "torch", "__main__"})


class Verdict(Enum):
    """What an import of a top-level name by the SUT gets."""

    REAL = "the module of this machine"
    STAND_IN = "a stand-in: the platform has it, this machine has not"
    VENDOR = "the emulated platform's vendor module"
    ABSENT = "ModuleNotFoundError: the platform's install does not bring it"


class ImportRules:
    """The verdicts for one platform. `machine` are the finders that this process had before the emulation."""

    def __init__(self, manifest: Manifest, log: StubLog, machine: Sequence[Any]) -> None:
        self._manifest = manifest
        self._log = log
        self._machine = tuple(machine)
        self._verdicts: dict[str, Verdict] = dict.fromkeys(_NEVER_JUDGED, Verdict.REAL)

    def find_here(self, name: str) -> ModuleSpec | None:
        """Find a top-level module as this machine would without the emulation."""
        for finder in self._machine:
            spec = finder.find_spec(name, None, None) if hasattr(finder, "find_spec") else None
            if spec is not None:
                return cast("ModuleSpec", spec)
        return None

    def verdict(self, top: str) -> Verdict:
        """Return the verdict for a top-level name; decided once."""
        known = self._verdicts.get(top)
        if known is None:
            known = self._verdicts[top] = self._decide(top)
        return known

    def _decide(self, top: str) -> Verdict:
        if top in self._manifest.vendor:
            return Verdict.VENDOR
        package = self._manifest.packages.get(top)
        if package is None:
            return Verdict.ABSENT
        if not package.usable:
            return Verdict.STAND_IN
        if top in sys.modules:
            return Verdict.REAL
        return Verdict.REAL if self.find_here(top) is not None and not self._lacks(top) else Verdict.STAND_IN

    def _lacks(self, top: str) -> list[str]:
        """Return what a package of this machine needs that the platform has and this machine has not.

        Half of an install behaves unlike the whole: transformers without torchvision refuses its image processors.
        """
        brought = self._manifest.packages
        needs = sorted(name for name in brought[top].needs if name in brought)
        return [name for name in needs if self.verdict(name) is Verdict.STAND_IN]

    def check(self, name: str, importer: str) -> None:
        """Raise ModuleNotFoundError where `importer` may not have `name`; note the use of a stand-in."""
        top = name.partition(".")[0]
        verdict = self.verdict(top)
        if verdict is Verdict.STAND_IN:
            if not is_sut(importer) and not importer.startswith("harness.emulation."):
                raise _not_found(top, "there is only a stand-in, which only the SUT gets")
            if is_sut(importer):
                self._log.record(top, importer)
        elif verdict is Verdict.ABSENT and is_sut(importer):
            raise _not_found(top, f"no part of the {self._manifest.platform.name} install brings it")

    def origin(self, top: str) -> Origin:
        """Describe the package behind a stand-in."""
        package = self._manifest.packages[top]
        return Origin(top, package.distribution, self._log, package.vendor, package.markers)

    def known_absent(self, name: str) -> bool:
        """Tell whether the data say that a submodule of a brought package does not exist."""
        package = self._manifest.packages.get(name.partition(".")[0])
        return package is not None and any(name == gone or name.startswith(gone + ".") for gone in package.absent)


def _not_found(top: str, why: str) -> ModuleNotFoundError:
    error = ModuleNotFoundError(f"No module named {top!r}", name=top)
    error.add_note(f"poolparity: {why}")
    return error


class PlatformFinder(MetaPathFinder, Loader):
    """Builds vendor modules and stand-ins; knows nothing of importers (ImportRules does).

    `answers`: stand-in module -> names in it that have a true value.
    """

    def __init__(
        self, rules: ImportRules, vendor: Mapping[str, VendorLoader], answers: Mapping[str, Mapping[str, object]]
    ) -> None:
        self._rules = rules
        self._vendor = vendor
        self._answers = answers

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a vendor module or of a stand-in, None for everything else."""
        top = fullname.partition(".")[0]
        verdict = self._rules.verdict(top)
        if verdict is Verdict.VENDOR:
            return self._vendor[top].find_spec(fullname)
        if verdict is Verdict.STAND_IN and not self._rules.known_absent(fullname):
            return ModuleSpec(fullname, self, origin="poolparity's stand-in", is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Make a stand-in module."""
        return StubModule(spec.name, self._rules.origin(spec.name.partition(".")[0]))

    def exec_module(self, module: ModuleType) -> None:
        """Bind what is known of the module; everything else in it is a stand-in."""
        vars(module).update(self._answers.get(module.__name__, {}))
        for name in self._answers:
            if name.startswith(module.__name__ + "."):
                importlib.import_module(name)


def caller_name(depth: int) -> str:
    """Return the module name of the frame `depth` levels above the caller of this function."""
    return str(sys._getframe(depth + 1).f_globals.get("__name__", ""))  # noqa: SLF001 - the only way to know the importer


def guard_imports(rules: ImportRules) -> None:
    """Put the rules into `__import__` and `importlib.import_module`, for good: a cell is one process."""
    real_import, real_import_module = builtins.__import__, importlib.import_module
    verdicts = rules._verdicts  # noqa: SLF001 - looked up on every import statement of the process
    real = Verdict.REAL

    def guarded_import(
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002 - the builtin's own parameter names
        locals: Mapping[str, object] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        if level == 0 and verdicts.get(name.partition(".")[0]) is not real:
            rules.check(name, str(globals.get("__name__", "")) if globals else caller_name(1))
        return real_import(name, globals, locals, fromlist or (), level)

    def guarded_import_module(name: str, package: str | None = None) -> ModuleType:
        if not name.startswith("."):
            rules.check(name, caller_name(1))
        return real_import_module(name, package)

    builtins.__import__ = guarded_import
    importlib.import_module = guarded_import_module
