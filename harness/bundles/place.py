"""Where a bundle goes: the folder that the user named, or one of ours that is pruned later."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from datetime import UTC, datetime
from pathlib import Path

import platformdirs

from harness.bundles.manifest import FILE
from harness.errors import UsageError

KEEP = 50
_OURS = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}")


def runs_dir() -> Path:
    """Return the folder of the bundles that nobody gave a place (`$XDG_STATE_HOME/poolparity/runs`)."""
    return Path(platformdirs.user_state_dir("poolparity")) / "runs"


def fresh_name(now: datetime | None = None) -> str:
    """Return a new folder name that sorts by time: `20261201T120000Z-1a2b3c`."""
    return f"{(now or datetime.now(UTC)).strftime('%Y%m%dT%H%M%SZ')}-{secrets.token_hex(3)}"


def check_out(out: Path) -> Path:
    """Return `out` where a bundle could be made there; UsageError otherwise. Creates nothing."""
    if out.is_dir():
        if any(out.iterdir()):
            msg = (
                f"--out {str(out)!r} is a folder that holds something already; expected a new or an empty one, "
                "so that no two runs mix; name another folder or remove this one"
            )
            raise UsageError(msg)
    elif out.exists() or out.is_symlink():
        msg = f"--out {str(out)!r} is not a folder; expected a new or an empty folder; name another place"
        raise UsageError(msg)
    parent = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        msg = f"--out {str(out)!r}: cannot write in {str(parent)!r}; expected a writable folder; name another place"
        raise UsageError(msg)
    return out


def make(out: Path) -> Path:
    """Create the bundle's folder; UsageError where the system refuses."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as reason:
        msg = (
            f"cannot make the bundle's folder {str(out)!r}: {reason.strerror}; "
            "expected a place where a folder can be made; name another with --out"
        )
        raise UsageError(msg) from reason
    return out


def prune(runs: Path, *, keep: int = KEEP) -> list[Path]:
    """Remove all but the newest `keep` bundles of `runs` and return what went.

    Only folders that carry one of our names and hold a manifest are ever touched; links are not followed.
    """
    ours = sorted(
        path
        for path in runs.iterdir()
        if _OURS.fullmatch(path.name) and not path.is_symlink() and (path / FILE).is_file()
    )
    old = ours[: max(0, len(ours) - keep)]
    for path in old:
        shutil.rmtree(path, ignore_errors=True)
    return old
