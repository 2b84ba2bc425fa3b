"""Loading of the SUT's modules: which one is being executed now, where its bytecode goes, what runs after it.

Whether a stand-in may be used depends on that: SGLang imports modules lazily, so "the imports are over" is no moment
in time but a property of the thread's stack. The state is per thread, because imports are.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

SUT_PACKAGE: Final = "sglang"
AfterExec = Callable[[ModuleType], None]


class _Stack(threading.local):
    def __init__(self) -> None:
        self.names: list[str] = []


_STACK: Final = _Stack()


def is_sut(module_name: str) -> bool:
    """Tell whether a module name belongs to the SUT."""
    return module_name == SUT_PACKAGE or module_name.startswith(SUT_PACKAGE + ".")


def executing() -> str | None:
    """Return the SUT module whose top-level code runs in this thread right now (the innermost), or None."""
    return _STACK.names[-1] if _STACK.names else None


@contextmanager
def marked(name: str) -> Iterator[None]:
    """Mark the SUT module `name` as being executed in this thread."""
    _STACK.names.append(name)
    try:
        yield
    finally:
        _STACK.names.pop()


class SutLoader(SourceFileLoader):
    """Loads one SUT module from source, with its bytecode kept away from the SUT's own tree."""

    def __init__(self, name: str, path: str, bytecode: Path | None, after: Sequence[AfterExec]) -> None:
        super().__init__(name, path)
        self._bytecode = bytecode
        self._after = after

    def get_code(self, fullname: str) -> CodeType | None:
        """Compile or read the cached bytecode, from `bytecode` and not from a `__pycache__` in the SUT."""
        before = sys.pycache_prefix
        sys.pycache_prefix = str(self._bytecode) if self._bytecode is not None else before
        try:
            return super().get_code(fullname)
        finally:
            sys.pycache_prefix = before

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code, marked as being executed, then the hooks."""
        with marked(module.__name__):
            super().exec_module(module)
        for hook in self._after:
            hook(module)


class SutFinder(MetaPathFinder):
    """First on `sys.meta_path`: finds the SUT's modules and gives them a SutLoader."""

    def __init__(self, root: Path, bytecode: Path | None) -> None:
        self.root = root
        self._bytecode = bytecode
        self._after: list[AfterExec] = []

    def after_exec(self, hook: AfterExec) -> None:
        """Call `hook(module)` after every SUT module that loads from now on."""
        self._after.append(hook)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a SUT module on disk; leave every other name to the next finder."""
        if not is_sut(fullname):
            return None
        spec = PathFinder.find_spec(fullname, [str(self.root)] if path is None else path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = SutLoader(fullname, spec.loader.path, self._bytecode, self._after)
        return spec
