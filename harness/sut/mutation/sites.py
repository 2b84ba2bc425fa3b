"""Where the operators apply in a module: every site is one mutant, named after what it changes and where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from harness.sut.mutation.operators import HOIST, OPERATORS
from harness.sut.mutation.scopes import Rewritten, ScopedTransformer, at_top


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


class _Visitor(ScopedTransformer):
    """Walks one module, counts sites by (operator, function), and replaces the wanted one."""

    def __init__(self, wanted: Mutant | None, operators: Iterable[str]) -> None:
        super().__init__()
        self.wanted = wanted
        self.operators = tuple(operators)
        self.counts: dict[tuple[str, str], int] = {}
        self.replaced: cst.CSTNode | None = None

    def leave_node(self, original: cst.CSTNode, updated: cst.CSTNode) -> Rewritten:
        """Count the sites at one node; replace it when one of them is wanted."""
        for name in self.operators:
            for replacement in OPERATORS[name](original):
                key = (name, self.qualified)
                number = self.counts[key] = self.counts.get(key, -1) + 1
                if self.replaced is None and self._is_wanted(*key, number):
                    self.replaced = original
                    return replacement
        return updated

    def _is_wanted(self, operator: str, function: str, number: int) -> bool:
        wanted = self.wanted
        return wanted is not None and (wanted.operator, wanted.function, wanted.number) == (operator, function, number)


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
    if mutant.operator not in OPERATORS:
        return None
    visitor = _Visitor(mutant, (mutant.operator,))
    changed = cst.parse_module(source).visit(visitor)
    if mutant.operator == HOIST and isinstance(visitor.replaced, cst.SimpleStatementLine):
        changed = at_top(changed, visitor.replaced)
    return changed.code if visitor.replaced is not None and changed.code != source else None
