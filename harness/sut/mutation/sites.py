"""Where the operators apply in a module: every site is one mutant, named after what it changes and where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from harness.sut.mutation.operators import OPERATORS


@dataclass(frozen=True, slots=True)
class Mutant:
    """One edit: the `number`-th place in `function` of `file` (inside the SUT) where `operator` applies."""

    operator: str
    file: str
    function: str
    number: int

    @property
    def name(self) -> str:
        """`operator@file:function#number`, as reports and the command line write it."""
        return f"{self.operator}@{self.file}:{self.function}#{self.number}"


class _Visitor(cst.CSTTransformer):
    """Walks one module, counts sites by (operator, function), and replaces the wanted one."""

    def __init__(self, wanted: Mutant | None, operators: Iterable[str]) -> None:
        super().__init__()
        self.wanted = wanted
        self.operators = tuple(operators)
        self.scope: list[str] = []
        self.counts: dict[tuple[str, str], int] = {}
        self.replaced = False

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:  # noqa: N802 - libcst's name
        self.scope.append(node.name.value)

    def visit_ClassDef(self, node: cst.ClassDef) -> None:  # noqa: N802 - libcst's name
        self.scope.append(node.name.value)

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]  # libcst's union of node types
        if isinstance(original_node, cst.FunctionDef | cst.ClassDef):
            self.scope.pop()
            return updated_node
        for name in self.operators:
            for replacement in OPERATORS[name](original_node):
                key = (name, ".".join(self.scope))
                number = self.counts[key] = self.counts.get(key, -1) + 1
                if self.wanted is not None and (*key, number) == self._wanted_key() and not self.replaced:
                    self.replaced = True
                    return replacement
        return updated_node

    def _wanted_key(self) -> tuple[str, str, int] | None:
        wanted = self.wanted
        return None if wanted is None else (wanted.operator, wanted.function, wanted.number)


def mutants_of(source: str, file: str, *, functions: Iterable[str] = ("",)) -> Iterator[Mutant]:
    """Yield every mutant of a module whose function starts with one of `functions` ("" matches all)."""
    visitor = _Visitor(None, OPERATORS)
    cst.parse_module(source).visit(visitor)
    prefixes = tuple(functions)
    for (operator, function), last in visitor.counts.items():
        if function and function.startswith(prefixes):
            yield from (Mutant(operator, file, function, number) for number in range(last + 1))


def mutate_source(source: str, mutant: Mutant) -> str | None:
    """Return the module with the mutant's edit, or None when the mutant does not apply to it."""
    visitor = _Visitor(mutant, (mutant.operator,))
    changed = cst.parse_module(source).visit(visitor)
    return changed.code if visitor.replaced and changed.code != source else None
