"""The mutants of one SUT: named ones, and those that operators make in the scope of `fixtures/systematic.toml`."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.data import fixtures_dir
from harness.errors import UsageError
from harness.sut.mutation import load_named, mutate_source
from harness.sut.mutation.systematic import Equivalent, load_systematic, systematic_mutants
from harness.sut.spec import SutTree


@dataclass(frozen=True, slots=True, kw_only=True)
class Specimen:
    """One mutant, ready to be tried: `change` returns the mutated source, or None where it does not apply."""

    name: str
    operator: str
    file: str
    platforms: tuple[str, ...]
    suites: tuple[str, ...]
    change: Callable[[str], str | None]
    named: bool = False
    equivalent: str = ""


def choose(tree: SutTree, patterns: Sequence[str], *, platforms: Sequence[str] = ()) -> list[Specimen]:
    """Return the mutants of a tree whose names match one of the patterns (all, without patterns).

    `platforms` narrows the platforms on which they are tried. Raises UsageError for a pattern that matches none.
    """
    root = tree.root
    if root is None:
        return []
    every = [*_named(tree), *_systematic(root)]
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(s.name, pattern) for s in every):
            msg = f"no mutant of {tree.name} is called {pattern!r}; expected a name or a pattern; see mutate --list"
            raise UsageError(msg)
    chosen = [s for s in every if not patterns or any(fnmatch.fnmatchcase(s.name, p) for p in patterns)]
    return [s for s in chosen if not platforms or set(s.platforms) & set(platforms)]


def _named(tree: SutTree) -> Iterator[Specimen]:
    for mutant in load_named(fixtures_dir() / "mutants"):
        if tree.name in mutant.suts or (tree.version is not None and f"sglang=={tree.version}" in mutant.suts):
            yield Specimen(
                name=mutant.name,
                operator=mutant.operator,
                file=mutant.file,
                platforms=mutant.platforms,
                suites=mutant.suites,
                change=mutant.changed,
                named=True,
            )


def _systematic(root: Path) -> Iterator[Specimen]:
    everything = load_systematic(fixtures_dir() / "systematic.toml")
    for mutant, scope in systematic_mutants(root, everything.scope):
        yield Specimen(
            name=mutant.name,
            operator=mutant.operator,
            file=mutant.file,
            platforms=scope.platforms,
            suites=scope.suites,
            change=lambda source, mutant=mutant: mutate_source(source, mutant),  # type: ignore[misc]  # a default binds it
            equivalent=_reason(mutant.name, everything.equivalent),
        )


def _reason(name: str, marks: Sequence[Equivalent]) -> str:
    return next((mark.reason for mark in marks if mark.speaks_of(name)), "")
