"""Systematic mutants: every operator at every place in scope (`fixtures/systematic.toml`)."""

from __future__ import annotations

import difflib
import fnmatch
from pathlib import Path

import msgspec

from harness.errors import UsageError
from harness.sut.mutation.sites import Mutant, mutants_of


class Scope(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Functions of one file (the first of `files` that exists), and the platforms and suites that judge them."""

    files: tuple[str, ...]
    functions: tuple[str, ...]
    platforms: tuple[str, ...]
    suites: tuple[str, ...]


class Equivalent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Mutants that change nothing a user could see, marked by hand. `mutant` is a pattern for their names."""

    mutant: str
    reason: str

    def speaks_of(self, name: str) -> bool:
        """Whether a mutant is one of these."""
        return fnmatch.fnmatchcase(name, self.mutant)


class Systematic(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file."""

    scope: tuple[Scope, ...]
    equivalent: tuple[Equivalent, ...] = ()


def load_systematic(path: Path) -> Systematic:
    """Read the file; UsageError names it and the trouble."""
    try:
        return msgspec.toml.decode(path.read_bytes(), type=Systematic)
    except (msgspec.DecodeError, UnicodeDecodeError, OSError) as reason:
        msg = f"{path}: {reason}; expected [[scope]] and [[equivalent]] tables; correct the file"
        raise UsageError(msg) from reason


def systematic_mutants(root: Path, scopes: tuple[Scope, ...]) -> list[tuple[Mutant, Scope]]:
    """Return every mutant of the tree at `root` in scope; UsageError for a scope that the tree has nothing of."""
    found = []
    for scope in scopes:
        file = next((name for name in scope.files if (root / name).is_file()), None)
        mutants = list(mutants_of((root / file).read_text(), file, functions=scope.functions)) if file else []
        if not mutants:
            msg = f"the scope {scope.files[0]} finds nothing in {root}; expected code to mutate; refresh the scope"
            raise UsageError(msg)
        found += [(mutant, scope) for mutant in mutants]
    return found


def diff_of(file: str, before: str, after: str) -> str:
    """Return a mutant as a unified diff."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), f"a/{file}", f"b/{file}", n=1, lineterm="")
    return "\n".join(lines)
