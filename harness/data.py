"""Where the suites and fixtures are: beside the packages in a clone, inside `harness` when installed from a wheel."""

from __future__ import annotations

from pathlib import Path

from harness.errors import InfrastructureError

_PACKAGE = Path(__file__).resolve().parent


def _find(name: str) -> Path:
    for base in (_PACKAGE / "_data", _PACKAGE.parent):
        if (base / name).is_dir():
            return base / name
    msg = (
        f"the folder {name!r} is in neither {_PACKAGE / '_data'} nor {_PACKAGE.parent}; "
        "expected it there as part of the installation; reinstall poolparity, or run from a complete clone"
    )
    raise InfrastructureError(msg)


def suites_dir() -> Path:
    """Return the folder that holds `kv/`, `moe/`, `platform/`, …; raises InfrastructureError when it is missing."""
    return _find("suites")


def fixtures_dir() -> Path:
    """Return the folder that holds `platforms/`, `models/`, …; raises InfrastructureError when it is missing."""
    return _find("fixtures")
