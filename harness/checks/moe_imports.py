"""Imports of the SUT, and what to say of one that fails: the importing line, the missing symbol, the chain to it."""

from __future__ import annotations

import importlib
import linecache
import re
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Final

from harness.emulation.loading import is_sut

_CANNOT_IMPORT: Final = re.compile(r"cannot import name '([^']+)' from (?:partially initialized module )?'([^']+)'")
_STATEMENT: Final = re.compile(r"(?:from|import)\s+([\w.]+)")
ImportTrouble = (ImportError, NameError)


@dataclass(frozen=True, slots=True)
class BrokenImport:
    """Why an import failed. `location` and `line` are the deepest statement that belongs to the SUT."""

    missing: str
    chain: tuple[str, ...]
    location: str
    line: str

    def __str__(self) -> str:
        where = f"{self.location}: `{self.line}`" if self.location else "a module outside the SUT"
        return f"{where} needs {self.missing}; chain: {' -> '.join((*self.chain, self.missing))}"


def missing_symbol(error: BaseException, line: str) -> str:
    """Return what an ImportError or NameError did not find: `module`, `module.name`, or the unbound name.

    `line` is the import statement: where a whole package is absent, it says which of its modules was wanted.
    """
    found = _CANNOT_IMPORT.search(str(error))
    if found is not None:
        return f"{found[2]}.{found[1]}"
    missing = str(getattr(error, "name", None) or error)
    wanted = _STATEMENT.match(line)
    return wanted[1] if wanted is not None and wanted[1].startswith(f"{missing}.") else missing


def in_package(path: str) -> str:
    """Cut a path down to what follows the folder that holds the package: `sglang/srt/…` or `reference/…`."""
    starts = [at for package in ("sglang", "reference") if (at := path.rfind(f"/{package}/")) >= 0]
    return path[min(starts) + 1 :] if starts else path


def _own(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _step(code: CodeType, module: str) -> str | None:
    """Name a frame's part in the chain: a module that was loading, or a function of the SUT."""
    if code.co_name == "<module>":
        return module.rpartition(".")[2]
    return code.co_name if is_sut(module) else None


def _chain(frames: list[tuple[FrameType, int]]) -> Iterator[str]:
    last = None
    for frame, _ in frames:
        module = _own(frame)
        name = None if module.startswith(("importlib", "harness")) else _step(frame.f_code, module)
        if name is not None and name != last:
            yield name
            last = name


def diagnose(error: BaseException) -> BrokenImport:
    """Read the chain of an import error from its traceback."""
    frames = list(traceback.walk_tb(error.__traceback__))
    sut = [(frame, line) for frame, line in frames if is_sut(_own(frame))]
    location, text = "", ""
    if sut:
        frame, number = sut[-1]
        path = frame.f_code.co_filename
        location = f"{in_package(path)}:{number}"
        text = linecache.getline(path, number).strip()
    return BrokenImport(missing_symbol(error, text), tuple(_chain(frames)), location, text)


def explained(error: Exception) -> Exception:
    """Return the same error with its diagnosis as a note."""
    error.add_note(str(diagnose(error)))
    return error


def import_names(module: str, names: list[str], call: str = "") -> list[str]:
    """Import a module in this (fresh) process and return those of `names` that it binds.

    `call`: "module:function" of the harness, called without arguments after the import; it returns further names that
    are bound then. An import error, also one that the call runs into, is raised with its diagnosis as a note.
    """
    try:
        loaded = importlib.import_module(module)
        bound = [name for name in names if hasattr(loaded, name)]
        if call:
            place, _, function = call.partition(":")
            bound += getattr(importlib.import_module(place), function)()
    except ImportTrouble as error:
        raise explained(error) from None
    return bound


def import_all(targets: list[tuple[str, list[str], str]]) -> list[list[str] | None]:
    """Import several modules in one process, one after the other; None stands for those that fail."""
    found: list[list[str] | None] = []
    for module, names, call in targets:
        try:
            found.append(import_names(module, names, call))
        except ImportTrouble:
            found.append(None)  # it is tried again, alone, by whoever wants to know why
    return found
