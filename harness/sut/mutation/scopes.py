"""Walking a module with the name of the function at hand, and moving an import to its top."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

Rewritten = cst.CSTNode | cst.FlattenSentinel[cst.BaseStatement]


class ScopedTransformer(cst.CSTTransformer):
    """A transformer that knows where it is: `qualified` is `Class.method` of the code being left, "" at the top."""

    def __init__(self) -> None:
        super().__init__()
        self._scope: list[str] = []

    @property
    def qualified(self) -> str:
        """The dotted name of the innermost function or class."""
        return ".".join(self._scope)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:  # noqa: N802 - libcst's name
        """Enter a function."""
        self._scope.append(node.name.value)

    def visit_ClassDef(self, node: cst.ClassDef) -> None:  # noqa: N802 - libcst's name
        """Enter a class."""
        self._scope.append(node.name.value)

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> Rewritten:  # type: ignore[override]  # libcst's union of node types
        """Leave a scope, or let `leave_node` decide what becomes of any other node."""
        if isinstance(original_node, cst.FunctionDef | cst.ClassDef):
            self._scope.pop()
            return updated_node
        return self.leave_node(original_node, updated_node)

    def leave_node(self, original: cst.CSTNode, updated: cst.CSTNode) -> Rewritten:
        """Return what stands where `original` stood; `updated` has the changes inside it."""
        raise NotImplementedError


def at_top(module: cst.Module, statement: cst.SimpleStatementLine) -> cst.Module:
    """Return the module with one more import: after its docstring, its `__future__` imports."""
    first = m.SimpleStatementLine(body=[m.Expr(m.SimpleString()) | m.ImportFrom(module=m.Name("__future__"))])
    place = next((i for i, line in enumerate(module.body) if not m.matches(line, first)), len(module.body))
    body = [*module.body[:place], statement.with_changes(leading_lines=[]), *module.body[place:]]
    return module.with_changes(body=body)
