"""Expectations: recorded failures that no release has fixed yet (`fixtures/expectations/*.toml`).

    [[expectation]]
    id = "ascend-fp8-page"
    case = "kv/backup[ascend-*-fp8_e4m3-*]"      # * and ? are wild, brackets are themselves
    sut = ">=0.5.21"                             # optional: versions of SGLang; a SUT without a version never matches
    platform = ["ascend"]
    mode = "emulated"                            # optional
    message = "has no attribute 'data_ptrs'"     # a regular expression that the failure's message must match
    reference = "https://github.com/sgl-project/sglang/issues/1"
    reason = "one sentence that explains the failure"
    expires = 2027-03-01                         # from this day on the entry is an error until somebody looks again
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from harness.data import fixtures_dir
from harness.errors import UsageError

_WILD: Final = {"*": ".*", "?": "."}


class Expectation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry, as written."""

    id: str
    case: str
    platform: list[str]
    message: str
    reference: str
    reason: str
    expires: date
    sut: str = ""
    mode: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError, which names the key, for a value that could never be used."""
        for key in ("id", "case", "platform", "message", "reference", "reason"):
            if not getattr(self, key):
                msg = f"is empty - at `$.{key}`"
                raise ValueError(msg)
        try:
            SpecifierSet(self.sut)
        except InvalidSpecifier as reason:
            msg = f"{reason}; expected a version specifier such as '>=0.5.21,<0.5.23' - at `$.sut`"
            raise ValueError(msg) from reason
        try:
            re.compile(self.message)
        except re.error as reason:
            msg = f"{reason}; expected a regular expression - at `$.message`"
            raise ValueError(msg) from reason

    def covers(self, case: str) -> bool:
        """Whether the case id matches the pattern."""
        return re.fullmatch("".join(_WILD.get(char, re.escape(char)) for char in self.case), case) is not None

    def explains(self, message: str) -> bool:
        """Whether a failure with this message is the one that was recorded."""
        return re.search(self.message, message) is not None

    def applies(self, *, version: str | None, platform: str, mode: str) -> bool:
        """Whether the entry is about this cell."""
        return platform in self.platform and self.mode in ("", mode) and self._about(version)

    def _about(self, version: str | None) -> bool:
        if not self.sut:
            return True
        try:
            return version is not None and SpecifierSet(self.sut).contains(Version(version), prereleases=True)
        except InvalidVersion:
            return False

    def expired(self, today: date | None = None) -> bool:
        """Whether somebody must look at the entry again."""
        return self.expires <= (today or datetime.now(UTC).date())


def load(folder: Path | None = None) -> tuple[Expectation, ...]:
    """Read every entry of a folder, `fixtures/expectations` by default; UsageError names file, entry and key."""
    found: dict[str, tuple[Path, Expectation]] = {}
    for path in sorted((folder or fixtures_dir() / "expectations").glob("*.toml")):
        for entry in _read(path):
            if entry.id in found:
                msg = f"{path}: expectation {entry.id!r} is in {found[entry.id][0]} too; expected unique ids; rename one"
                raise UsageError(msg)
            found[entry.id] = path, entry
    return tuple(entry for _, entry in found.values())


def _read(path: Path) -> Iterator[Expectation]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as reason:
        msg = f"{path}: {reason}; expected a TOML file of [[expectation]] entries; repair or remove it"
        raise UsageError(msg) from reason
    entries = document.get("expectation")
    if set(document) - {"expectation"} or not isinstance(entries, list):
        msg = f"{path}: found the keys {sorted(document)}; expected only [[expectation]] entries; repair or remove it"
        raise UsageError(msg)
    for number, raw in enumerate(entries, start=1):
        yield _convert(path, number, raw)


def _convert(path: Path, number: int, raw: Any) -> Expectation:
    try:
        return msgspec.convert(raw, type=Expectation)
    except msgspec.ValidationError as reason:
        name = raw.get("id") if isinstance(raw, dict) else None
        called = f" ({name!r})" if name else ""
        msg = f"{path}: expectation {number}{called}: {reason}; see the top of harness/verdicts/expectations.py"
        raise UsageError(msg) from reason


def for_cell(
    entries: Iterable[Expectation], *, version: str | None, platform: str, mode: str
) -> tuple[Expectation, ...]:
    """Return the entries that are about one cell."""
    return tuple(entry for entry in entries if entry.applies(version=version, platform=platform, mode=mode))
