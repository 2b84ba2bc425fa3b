"""Which files are the SUT's, and how a line of one is called in results: `sglang/…/file.py:line`."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path


@cache
def _folders(root: Path | None) -> tuple[str, ...]:
    """The folder of the SUT's package, as written and with links resolved, with a slash at the end.

    Not `root` itself: for an installed SUT that is site-packages, which torch and pytest share.
    """
    if root is None:
        spec = find_spec("reference")
        places = list(spec.submodule_search_locations or ()) if spec is not None else []
    else:
        places = [str(root / "sglang")]
    return tuple({f"{form(place)}/" for place in places for form in (os.path.abspath, os.path.realpath)})


def sut_location(path: str, line: int, root: Path | None) -> str:
    """Return `sglang/…/file.py:line` for a file of the SUT at `root` (None: the reference), "" for any other file."""
    package = "reference" if root is None else "sglang"
    for folder in _folders(root):
        if path.startswith(folder):
            return f"{package}/{path.removeprefix(folder)}:{line}"
    return ""
