"""The closed lists of names that options take, and what a wrong name is told."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from harness.errors import UsageError

SUITES = ("kv", "moe", "platform", "timing")
DEFAULT_SUITES = ("kv", "moe", "platform")
MODES = ("auto", "native", "emulated")


def check_names(kind: str, asked: Iterable[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return `asked` without repetitions, in order; UsageError for the first name that is not in `known`."""
    names = tuple(dict.fromkeys(asked))
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name.lower(), known, n=2, cutoff=0.5)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            msg = f"unknown {kind} {name!r}: expected one of {', '.join(known)}{hint}"
            raise UsageError(msg)
    return names
