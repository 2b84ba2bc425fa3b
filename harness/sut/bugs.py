"""Known upstream bugs: `fixtures/bugs/*.toml`, one file a bug, with the cases that show it or why none can."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from harness import platforms
from harness.errors import UsageError

NEEDS = ("hardware", "capability", "history")


class Show(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to see a bug: cases (patterns of ids) that fail with `symptom`, a regular expression, on `bad` only.

    `good` does not have it. Where no release does, `mutants` (named ones) put it into a copy of `good`, and `bad` stays
    empty.
    """

    platform: str
    case: tuple[str, ...]
    symptom: str
    good: str
    bad: str = ""
    mutants: tuple[str, ...] = ()


class Bug(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One upstream bug. `present_in` and `fixed_in` are what upstream's history says; `show` is what we can see.

    Without a `show`, `needs` says what is missing (hardware; a capability of the harness; history: no release that
    the drivers know has it) and `why` says it in words.
    """

    title: str
    upstream: str
    area: str
    platforms: str
    introduced_by: str = ""
    fixed_by: str = ""
    present_in: tuple[str, ...] = ()
    fixed_in: str = ""
    show: tuple[Show, ...] = ()
    needs: str = ""
    why: str = ""
    note: str = ""
    id: str = ""


def load_bugs(folder: Path) -> list[Bug]:
    """Read every bug, sorted by id, which is the file's name; UsageError names file, key and trouble."""
    return [_read(path) for path in sorted(folder.glob("*.toml"))]


def _read(path: Path) -> Bug:
    try:
        bug = msgspec.toml.decode(path.read_bytes(), type=Bug)
    except (msgspec.DecodeError, UnicodeDecodeError) as reason:
        raise _wrong(path, str(reason)) from reason
    if bool(bug.show) == bool(bug.why):
        raise _wrong(path, "both `show` and `why`" if bug.show else "neither `show` nor `why`")
    if bug.why and bug.needs not in NEEDS:
        raise _wrong(path, f"needs = {bug.needs!r}, which is none of {', '.join(NEEDS)}")
    for show in bug.show:
        _check(path, show)
    return msgspec.structs.replace(bug, id=path.stem)


def _check(path: Path, show: Show) -> None:
    if show.platform not in platforms.NAMES:
        raise _wrong(path, f"platform = {show.platform!r}, which is none of {', '.join(platforms.NAMES)}")
    if bool(show.bad) == bool(show.mutants):
        raise _wrong(path, "a `show` with both `bad` and `mutants`, or neither")
    try:
        re.compile(show.symptom)
    except re.error as reason:
        raise _wrong(path, f"symptom = {show.symptom!r}: {reason}") from reason


def _wrong(path: Path, found: str) -> UsageError:
    msg = f"{path}: found {found}; expected a bug as docs/bugs.md describes; correct the file"
    return UsageError(msg)
