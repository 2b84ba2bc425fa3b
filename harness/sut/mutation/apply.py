"""Writing a mutant: a copy of a tree in which one file differs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from harness.errors import PoolparityError
from harness.sut.mutation.sites import Mutant, mutate_source


class NotApplicableError(PoolparityError):
    """A mutant finds nothing to change in this SUT; a mutant that no longer applies is an error, not a skip."""

    exit_code = 2


def copy_tree(root: Path, target: Path) -> Path:
    """Copy the SUT tree at `root` into the new folder `target` with hard links (or copies across file systems).

    Whoever edits a file of the copy must replace it, never write into it: the content is shared with the original.
    """

    def link(source: str, destination: str) -> None:
        try:
            os.link(source, destination)
        except OSError:
            shutil.copy2(source, destination)

    shutil.copytree(root, target, copy_function=link, ignore=shutil.ignore_patterns("__pycache__", ".git"))
    return target


def write_mutant(root: Path, target: Path, mutant: Mutant) -> Path:
    """Write the mutant of the tree at `root` into the new folder `target`; NotApplicableError leaves nothing behind."""
    path = root / mutant.file
    source = path.read_text() if path.is_file() else None
    changed = mutate_source(source, mutant) if source is not None else None
    if changed is None:
        found = "no such file" if source is None else "nothing in it that the operator applies to at that place"
        msg = f"mutant {mutant.name}: {found} in {root}; expected a site there; refresh the mutant or drop it"
        raise NotApplicableError(msg)
    return write_changed(root, target, {mutant.file: changed})


def write_changed(root: Path, target: Path, files: Mapping[str, str]) -> Path:
    """Copy the tree at `root` into the new folder `target`, with other contents for some of its files."""
    copy_tree(root, target)
    for name, content in files.items():
        (target / name).unlink()
        (target / name).write_text(content)
    return target
