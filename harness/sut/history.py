"""The points between two SUTs: releases on the index, or commits of one checkout."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UsageError
from harness.sut import cache as store
from harness.sut import pypi
from harness.sut.spec import PACKAGE


def releases_between(one: str, other: str) -> tuple[str, ...]:
    """Return the releases from the older of two to the newer, both included, as `sglang==X`.

    They are those of the index, or the cached ones where no index can be reached; no pre-releases.
    """
    low, high = sorted((pypi.parse_release(one), pypi.parse_release(other)))
    known = pypi.releases_on_index() or pypi.cached_releases(store.cache_dir())
    inside = [version for version in known if low < version < high and not version.is_prerelease]
    return tuple(f"{PACKAGE}=={version}" for version in (low, *inside, high))


def is_release(name: str) -> bool:
    """Whether a SUT string names a release."""
    return name.startswith(f"{PACKAGE}==")


@dataclass(frozen=True, slots=True)
class Commits:
    """The commits between two of one checkout, as `git bisect` sees them: merges included, ancestors of `old` not."""

    folder: str
    old: str
    new: str

    def left(self, olds: Sequence[str], new: str) -> list[str]:
        """Return the commits that may be the first new one, as `folder@commit`."""
        return [point for point in self._by_use(olds, new) if point != new]

    def middle(self, olds: Sequence[str], new: str, skipped: Sequence[str]) -> str | None:
        """Return the commit that tells the most, of those that are not skipped."""
        return next((point for point in self.left(olds, new) if point not in skipped), None)

    def _by_use(self, olds: Sequence[str], new: str) -> list[str]:
        excluded = [f"^{self._commit(old)}" for old in olds]
        listed = git(Path(self.folder), "rev-list", "--bisect-all", self._commit(new), *excluded)
        return [f"{self.folder}@{line.split()[0]}" for line in listed.splitlines()]

    @staticmethod
    def _commit(point: str) -> str:
        return point.rpartition("@")[2]


def commits_between(one: str, other: str) -> Commits:
    """Return the commits between two refs of a checkout, whichever is the older.

    Raises UsageError where the two are of different checkouts, or neither comes from the other.
    """
    folder, at, ref = one.rpartition("@")
    folder_2, at_2, ref_2 = other.rpartition("@")
    if not at or not at_2 or Path(folder).expanduser().resolve() != Path(folder_2).expanduser().resolve():
        msg = (
            f"cannot go from {one!r} to {other!r}; expected two releases (sglang==X), or two refs of one checkout "
            "(path@ref); name both ends the same way"
        )
        raise UsageError(msg)
    place = Path(folder).expanduser()
    a, b = (git(place, "rev-parse", "--verify", f"{name}^{{commit}}").strip() for name in (ref, ref_2))
    base = git(place, "merge-base", a, b).strip()
    if base not in (a, b):
        msg = (
            f"neither of {one!r} and {other!r} comes from the other: their merge base is {base[:12]}; expected one to "
            f"be an ancestor; bisect from {folder}@{base[:12]}"
        )
        raise UsageError(msg)
    old, new = (a, b) if base == a else (b, a)
    return Commits(folder, f"{folder}@{old}", f"{folder}@{new}")


def git(folder: Path, *arguments: str) -> str:
    """Return what a git command prints; UsageError with its own words when it fails."""
    ran = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False)
    if ran.returncode:
        why = ran.stderr.strip().splitlines()
        msg = f"git {arguments[0]} in {str(folder)!r}: {why[-1] if why else 'failed'}; expected refs that are there"
        raise UsageError(msg)
    return ran.stdout
