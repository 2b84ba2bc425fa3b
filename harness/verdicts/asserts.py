"""What an exception without a text was about: its statement, and the values of the names in it when it was raised."""

from __future__ import annotations

import ast
import inspect
import linecache
import reprlib
import traceback
from collections.abc import Iterator
from types import FrameType, GetSetDescriptorType, MemberDescriptorType
from typing import Any, Final

_MISSING: Final = object()
_STORED: Final = (GetSetDescriptorType, MemberDescriptorType)

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 80
_short.maxlist = _short.maxtuple = _short.maxdict = 6


def explain(error: BaseException) -> str:
    """Return `assert a == self.b (a = 1, self.b = 2)`, or the source line where the statement cannot be parsed."""
    stack = list(traceback.walk_tb(error.__traceback__))
    if not stack:
        return "without a text"
    frame, line = stack[-1]
    path = frame.f_code.co_filename
    statement = _statement(path, line)
    if statement is None:
        return linecache.getline(path, line).strip() or f"without a text, at {path}:{line}"
    values = [f"{name} = {show(value)}" for name, value in _values(statement, frame)]
    source = ast.unparse(statement)
    return f"{source} ({', '.join(values)})" if values else source


def _statement(path: str, line: int) -> ast.Assert | ast.Raise | None:
    """Return the smallest `assert` or `raise` around a line: SGLang writes them over several."""
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except (SyntaxError, ValueError):
        return None
    kinds = (node for node in ast.walk(tree) if isinstance(node, ast.Assert | ast.Raise))
    around = [node for node in kinds if node.lineno <= line <= (node.end_lineno or node.lineno)]
    return min(around, key=lambda node: (node.end_lineno or 0) - node.lineno, default=None)


def _values(statement: ast.Assert | ast.Raise, frame: FrameType) -> Iterator[tuple[str, Any]]:
    """Yield the names in a statement, as they are written and in their order, with what they stand for."""
    nodes = [node for node in ast.walk(statement) if isinstance(node, ast.Name | ast.Attribute)]
    called = {id(node.func) for node in ast.walk(statement) if isinstance(node, ast.Call)}
    inside = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    known: set[str] = set()
    for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset)):
        name, value = ast.unparse(node), _look_up(node, frame)
        if id(node) not in called | inside and value is not _MISSING and name not in known:
            known.add(name)
            yield name, value


def _look_up(node: ast.expr, frame: FrameType) -> Any:
    """Return the value of `a` or `a.b.c`; never runs code of the SUT, so a property has none."""
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id, _MISSING))
    if not isinstance(node, ast.Attribute):
        return _MISSING
    owner = _look_up(node.value, frame)
    if owner is _MISSING:
        return _MISSING
    static = inspect.getattr_static(owner, node.attr, _MISSING)
    if isinstance(static, _STORED):
        return getattr(owner, node.attr)
    return _MISSING if hasattr(type(static), "__get__") else static


def show(value: Any) -> str:
    """Return a short text of a value; of a tensor only its shape, type and device, which cost nothing."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{type(value).__name__}({tuple(value.shape)}, {value.dtype}, {getattr(value, 'device', 'host')})"
    return _short.repr(value)
