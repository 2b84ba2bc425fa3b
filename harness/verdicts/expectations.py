"""Expected failures: what no release has fixed yet, as docs/expectations.md describes their files."""

from __future__ import annotations

import fnmatch
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from harness.errors import UsageError


class Expectation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One expected failure, as its file states it."""

    id: str
    case: tuple[str, ...]
    message: str
    reference: str
    reason: str
    expires: date
    sut: str = ""
    platform: tuple[str, ...] = ()
    mode: str = ""

    def covers(self, case: str, *, version: str | None, platform: str, mode: str) -> bool:
        """Whether this expectation speaks of a case of a cell. An unknown version is covered: it may have any bug."""
        named = any(fnmatch.fnmatchcase(case, _literal_brackets(pattern)) for pattern in self.case)
        return named and self.holds(version=version, platform=platform, mode=mode)

    def holds(self, *, version: str | None, platform: str, mode: str) -> bool:
        """Whether the conditions on the cell are met, whatever the case."""
        return (
            (not self.platform or platform in self.platform)
            and self.mode in ("", mode)
            and (not self.sut or version is None or _in(version, self.sut))
        )

    def matches(self, message: str) -> bool:
        """Whether a failure is the expected one."""
        return re.search(self.message, message) is not None

    def expired(self, today: date | None = None) -> bool:
        """Whether the expiry date has passed."""
        return (today or datetime.now(UTC).date()) > self.expires


def _literal_brackets(pattern: str) -> str:
    return re.sub(r"[\[\]]", lambda m: f"[{m.group()}]", pattern)


def _in(version: str, specifier: str) -> bool:
    try:
        return SpecifierSet(specifier).contains(Version(version), prereleases=True)
    except InvalidVersion:
        return True


def load(folder: Path) -> list[Expectation]:
    """Read every `*.toml` of a folder, sorted by name; UsageError names the file, the entry and the key."""
    found = [entry for path in sorted(folder.glob("*.toml")) for entry in _read(path)]
    ids = [entry.id for entry in found]
    for twice in {i for i in ids if ids.count(i) > 1}:
        msg = f"{folder}: the expectation id {twice!r} stands twice; expected each id once; rename one"
        raise UsageError(msg)
    return found


def _read(path: Path) -> Iterator[Expectation]:
    try:
        content: dict[str, Any] = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as reason:
        msg = f"{path}: {reason}; expected TOML with [[expectation]] tables"
        raise UsageError(msg) from reason
    if unknown := set(content) - {"expectation"}:
        msg = f"{path}: unknown key {min(unknown)!r}; expected only [[expectation]] tables"
        raise UsageError(msg)
    for number, table in enumerate(content.get("expectation", []), start=1):
        yield _convert(path, number, table)


def _convert(path: Path, number: int, table: dict[str, Any]) -> Expectation:
    where = f"{path}: expectation {number} ({table.get('id', 'without an id')})"
    try:
        entry = msgspec.convert(table, type=Expectation)
        re.compile(entry.message)
        SpecifierSet(entry.sut)
    except msgspec.ValidationError as reason:
        msg = f"{where}: {reason}; expected the keys of docs/expectations.md"
        raise UsageError(msg) from reason
    except (re.error, InvalidSpecifier) as reason:
        msg = f"{where}: {reason}; expected a regular expression as message and a version specifier as sut"
        raise UsageError(msg) from reason
    return entry


def find(entries: Iterable[Expectation], case: str, **cell: Any) -> Sequence[Expectation]:
    """Return the expectations that speak of a case (`version`, `platform` and `mode` describe its cell)."""
    return [entry for entry in entries if entry.covers(case, **cell)]
