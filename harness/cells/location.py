"""Which files belong to the SUT, and how a line of it is called in results: `sglang/…/file.py:line`."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_PACKAGES = {False: "sglang", True: "reference"}


@cache
def _folders(root: Path | None) -> tuple[str, ...]:
    """Folders of the SUT's package, as written and with links resolved, each ending in a slash."""
    if root is None:
        spec = find_spec("reference")
        places = list(spec.submodule_search_locations or ()) if spec else []
    else:
        places = [str(root / "sglang")]
    return tuple({f"{form(place)}/" for place in places for form in (os.path.abspath, os.path.realpath)})


def sut_location(path: str, line: int, root: Path | None) -> str:
    """Return `sglang/…/file.py:line` for a file of the SUT at `root` (None: the reference), and "" for any other."""
    for folder in _folders(root):
        if path.startswith(folder):
            return f"{_PACKAGES[root is None]}/{path.removeprefix(folder)}:{line}"
    return ""
