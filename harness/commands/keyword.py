"""`-k EXPR`: pytest's own expression language, checked before anything is fetched or forked."""

from __future__ import annotations

from _pytest.mark.expression import Expression

from harness.errors import UsageError


def check_keyword(expression: str) -> str:
    """Return the expression stripped; UsageError when pytest could not parse it. An empty one selects everything."""
    text = expression.strip()
    if not text:
        return ""
    try:
        Expression.compile(text)
    except Exception as reason:  # the type differs between pytest releases: ParseError, then SyntaxError
        why = reason.msg if isinstance(reason, SyntaxError) else str(reason)
        msg = (
            f"-k {expression!r} is no selection: {why}; "
            "expected pytest's -k language, names joined with and, or, not and brackets: 'backup and not layer_first'"
        )
        raise UsageError(msg) from reason
    return text
