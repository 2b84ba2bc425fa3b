"""Vendor packages of the emulated platform: plain modules with exactly the names that its build binds.

A name that the build lacks is an ImportError and a module that it lacks a ModuleNotFoundError, by Python's own hand.
A function is a double where there is one; a wrapper whose op the build does not register fails as torch.ops does; any
other function raises EmulationGap when it is called.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

from harness.emulation.manifest import VendorPackage
from harness.emulation.stubs import Origin, Stub, StubLog
from harness.errors import EmulationGap

Doubles = Mapping[str, Any]
"""Public name -> double, for one vendor module."""


def gap(module: str, name: str) -> Callable[..., NoReturn]:
    """Return a function that can be imported and not called, because nothing stands in for it."""

    def not_modelled(*_args: object, **_keywords: object) -> NoReturn:
        msg = (
            f"{module}.{name} was called: the platform's build has it, poolparity has no double for it; "
            "run this case on the hardware, or add a double in harness/emulation/doubles"
        )
        raise EmulationGap(msg)

    not_modelled.__name__, not_modelled.__qualname__, not_modelled.__module__ = name, name, module
    return not_modelled


def missing_op(module: str, name: str, namespace: str, op: str) -> Callable[..., NoReturn]:
    """Return a wrapper around a torch op that the build does not register: it fails as `torch.ops` does."""

    def no_such_op(*_args: object, **_keywords: object) -> NoReturn:
        msg = f"'_OpNamespace' '{namespace}' object has no attribute '{op}'"
        raise AttributeError(msg)

    no_such_op.__name__, no_such_op.__qualname__, no_such_op.__module__ = name, name, module
    return no_such_op


class VendorLoader(Loader):
    """Builds the modules of one vendor package. `doubles`: module name -> its doubles."""

    def __init__(self, package: VendorPackage, doubles: Mapping[str, Doubles], log: StubLog) -> None:
        self._package = package
        self._doubles = doubles
        self._origin = Origin(package.name, package.name, log, vendor=True)

    def find_spec(self, fullname: str) -> ModuleSpec | None:
        """Return the spec of a module that the build has, None for any other."""
        module = self._package.modules.get(fullname)
        if module is None:
            return None
        return ModuleSpec(fullname, self, origin="poolparity's vendor manifest", is_package=module.is_package)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Let the import system make a plain module."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Bind the names, then import what the real package imports by itself."""
        described = self._package.modules[module.__name__]
        for name in described.functions:
            setattr(module, name, self._function(module.__name__, name))
        for name in described.objects:
            double = self._doubles.get(module.__name__, {}).get(name)
            setattr(module, name, double or Stub(f"{module.__name__}.{name}", self._origin))
        if module.__name__ in {self._package.name, f"{self._package.name}.version"}:
            vars(module)["__version__"] = self._package.version
        if module.__name__ == self._package.name:
            for submodule in self._package.eager:
                if submodule in self._package.modules:
                    importlib.import_module(submodule)

    def _function(self, module: str, name: str) -> Callable[..., Any]:
        op = self._package.missing_ops.get(name)
        if op is not None:
            return missing_op(module, name, self._package.name, op)
        for doubles in (self._doubles.get(module, {}), *self._doubles.values()):
            if name in doubles:  # the package's own __init__ binds the very functions of its submodules
                function: Callable[..., Any] = doubles[name]
                return function
        return gap(module, name)
