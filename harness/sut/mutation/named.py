"""Named mutants: bugs that somebody described in `fixtures/mutants/*.toml`, each with the case that must catch it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from harness.errors import UsageError
from harness.sut.mutation.apply import NotApplicableError, write_changed
from harness.sut.mutation.edits import EDITS

TEXT = "text"


class NamedMutant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One described bug.

    `edit` says how it is put in: `text` replaces the text `find` by `replace`, from the first `after` on; the others
    are `EDITS`, which find code by its meaning in `function`. `suts` are the releases that it is known to apply to,
    `platform` those where `keyword` (pytest's -k) selects cases that it makes fail with a `message` (a regular
    expression), near the line of the SUT that has `near`. `upstream` is the change or report that it re-plants.
    """

    name: str
    what: str
    file: str
    find: str
    platform: str | list[str]
    message: str
    suts: tuple[str, ...] = ()
    edit: str = TEXT
    function: str = ""
    after: str = ""
    replace: str = ""
    keyword: str = ""
    suites: tuple[str, ...] = ("kv", "moe", "platform")
    near: str = ""
    upstream: str = ""

    @property
    def operator(self) -> str:
        """What reports show as the operator of a mutant that none made."""
        return "upstream" if self.upstream else "planted"

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platforms on which it shows."""
        return (self.platform,) if isinstance(self.platform, str) else tuple(self.platform)

    def changed(self, source: str) -> str | None:
        """Return the source of `file` with the bug, None where it does not apply; UsageError for a broken edit."""
        if self.edit == TEXT:
            head, after, tail = source.partition(self.after) if self.after else ("", "", source)
            applies = bool(after or not self.after) and self.find in tail
            return head + after + tail.replace(self.find, self.replace, 1) if applies else None
        return EDITS[self.edit](source, self.function, self.find, self.replace)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    mutant: list[NamedMutant]
    sut: str = ""


def load(folder: Path) -> list[NamedMutant]:
    """Read every named mutant of a folder, in the order of files and entries; UsageError names file and trouble."""
    found: dict[str, NamedMutant] = {}
    for path in sorted(folder.glob("*.toml")):
        for entry in _read(path):
            if entry.name in found:
                msg = f"{path}: two mutants are called {entry.name!r}; expected each name once; rename one"
                raise UsageError(msg)
            found[entry.name] = entry
    return list(found.values())


def _read(path: Path) -> list[NamedMutant]:
    try:
        content = msgspec.toml.decode(path.read_bytes(), type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError) as reason:  # ValidationError is a DecodeError
        msg = f"{path}: {reason}; expected [[mutant]] tables as docs/mutants.md describes; correct the file"
        raise UsageError(msg) from reason
    for entry in content.mutant:
        if entry.edit not in (TEXT, *EDITS):
            known = ", ".join((TEXT, *EDITS))
            msg = f"{path}: mutant {entry.name}: unknown edit {entry.edit!r}; expected one of {known}; correct it"
            raise UsageError(msg)
    suts = (content.sut,) if content.sut else ()
    return [msgspec.structs.replace(entry, suts=entry.suts or suts) for entry in content.mutant]


def write_named(root: Path, target: Path, mutants: Iterable[NamedMutant]) -> Path:
    """Write the tree at `root` with all of the mutants put in, one after the other, into the new folder `target`.

    Raises NotApplicableError, and leaves nothing behind, when one finds nothing to change.
    """
    changed: dict[str, str] = {}
    for mutant in mutants:
        path = root / mutant.file
        source = changed.get(mutant.file) or (path.read_text() if path.is_file() else None)
        new = mutant.changed(source) if source is not None else None
        if new is None:
            found = "no such file" if source is None else f"nothing in it that says {mutant.find!r}"
            msg = f"mutant {mutant.name}: {mutant.file}: {found} in {root}; expected to change it; refresh or drop it"
            raise NotApplicableError(msg)
        changed[mutant.file] = new
    return write_changed(root, target, changed)
