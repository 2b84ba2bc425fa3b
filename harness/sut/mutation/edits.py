"""Named edits: a bug put into one function by what its code says, whatever its formatting or line.

Code is compared as syntax, so comments, line breaks and trailing commas make no difference, and an edit that was
written against one release applies to every other that says the same.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

import libcst as cst

from harness.errors import UsageError
from harness.sut.mutation.scopes import Rewritten, ScopedTransformer, at_top

Edit = Callable[[str, str, str, str], str | None]
"""(source, function, find, put) -> the changed source, or None where the function has no such code."""


class _InFunction(ScopedTransformer):
    """Rewrites the first node of one function for which `rewrite` has an answer."""

    def __init__(self, function: str, rewrite: Callable[[cst.CSTNode], Rewritten | None]) -> None:
        super().__init__()
        self.function = function
        self.rewrite = rewrite
        self.done = False

    def leave_node(self, original: cst.CSTNode, updated: cst.CSTNode) -> Rewritten:
        """Rewrite one node."""
        inside = self.qualified == self.function or self.qualified.startswith(f"{self.function}.")
        answer = self.rewrite(original) if inside and not self.done else None
        if answer is None:
            return updated
        self.done = True
        return answer


def _changed(source: str, function: str, rewrite: Callable[[cst.CSTNode], Rewritten | None]) -> str | None:
    visitor = _InFunction(function, rewrite)
    code = cst.parse_module(source).visit(visitor).code
    return code if visitor.done and code != source else None


def _meaning(code: str) -> str:
    """Return what code says, without its looks; UsageError for what is no code."""
    try:
        return ast.dump(ast.parse(code))
    except SyntaxError as reason:
        msg = f"cannot parse {code!r}: {reason.msg}; expected an expression or a statement; correct the mutant's file"
        raise UsageError(msg) from reason


def _says(node: cst.CSTNode, meaning: str) -> bool:
    if not isinstance(node, cst.BaseExpression | cst.SimpleStatementLine | cst.BaseCompoundStatement):
        return False
    code = cst.Module([]).code_for_node(node)
    try:  # an expression is parsed in brackets: it may go over several lines
        return meaning == ast.dump(ast.parse(f"({code})" if isinstance(node, cst.BaseExpression) else code))
    except SyntaxError:  # a keyword's name, a starred argument: no expression by itself
        return False


def replace(source: str, function: str, find: str, put: str) -> str | None:
    """Replace the first expression or statement that says `find` by the code `put`."""
    meaning = _meaning(find)
    _meaning(put)

    def rewrite(node: cst.CSTNode) -> Rewritten | None:
        if not _says(node, meaning):
            return None
        if isinstance(node, cst.BaseExpression):
            return cst.parse_expression(f"({put})")
        return cst.FlattenSentinel(cst.parse_module(put).body)

    return _changed(source, function, rewrite)


def _statements(block: cst.BaseSuite) -> Sequence[cst.BaseStatement]:
    if isinstance(block, cst.IndentedBlock):
        return block.body
    return [cst.SimpleStatementLine(block.body)] if isinstance(block, cst.SimpleStatementSuite) else []


def take_body(source: str, function: str, find: str, _put: str) -> str | None:
    """Drop a guard: the first `if` whose test says `find` gives way to what it guards."""
    meaning = _meaning(find)

    def rewrite(node: cst.CSTNode) -> Rewritten | None:
        if not isinstance(node, cst.If) or not _says(node.test, meaning):
            return None
        return cst.FlattenSentinel(_statements(node.body))

    return _changed(source, function, rewrite)


def take_else(source: str, function: str, find: str, _put: str) -> str | None:
    """Forget a special case: the first `if` whose test says `find` gives way to its `else` (or to nothing)."""
    meaning = _meaning(find)

    def rewrite(node: cst.CSTNode) -> Rewritten | None:
        if not isinstance(node, cst.If) or not _says(node.test, meaning):
            return None
        if isinstance(node.orelse, cst.If):
            return node.orelse
        return cst.FlattenSentinel(_statements(node.orelse.body) if node.orelse is not None else [])

    return _changed(source, function, rewrite)


def hoist_import(source: str, function: str, find: str, _put: str) -> str | None:
    """Move the import that says `find` from the function to the top of its module."""
    meaning = _meaning(find)
    moved: list[cst.SimpleStatementLine] = []

    def rewrite(node: cst.CSTNode) -> Rewritten | None:
        if not isinstance(node, cst.SimpleStatementLine) or not _says(node, meaning):
            return None
        moved.append(node)
        return cst.FlattenSentinel(cst.parse_module("pass\n").body)

    code = _changed(source, function, rewrite)
    return at_top(cst.parse_module(code), moved[0]).code if code is not None else None


EDITS: dict[str, Edit] = {
    "replace": replace,
    "take-body": take_body,
    "take-else": take_else,
    "hoist-import": hoist_import,
}
