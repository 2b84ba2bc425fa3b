"""Trees of mutants that are rewritten, not copied anew: one file changes, and one is compiled again."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Self

from harness.sut.mutation.apply import copy_tree


class Workshop:
    """A few copies of one tree in `folder`; each holds one mutant at a time. Leaving it removes them.

    Every file that it writes gets a modification time of its own, in whole seconds: Python tells compiled files apart
    by no more than that and the size, and two mutants may well be of one size.
    """

    def __init__(self, root: Path, folder: Path, bytecode: Path) -> None:
        self.root = root
        self.folder = folder
        self.bytecode = bytecode
        self._written: dict[Path, str] = {}
        self._clock = 1_000_000_000

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.bytecode / self.folder.relative_to("/"), ignore_errors=True)

    def tree(self, bench: int, file: str, source: str) -> Path:
        """Return the tree of a bench with another content for one file, and every other file as it was."""
        tree = self.folder / str(bench)
        if not tree.exists():
            copy_tree(self.root, tree)
            self._share_bytecode(tree)
        before = self._written.get(tree)
        if before is not None and before != file:
            (tree / before).unlink()
            os.link(self.root / before, tree / before)
        (tree / file).unlink()
        (tree / file).write_text(source)
        self._clock += 1
        os.utime(tree / file, (self._clock, self._clock))
        self._written[tree] = file
        return tree

    def _share_bytecode(self, tree: Path) -> None:
        """Give a copy the compiled files of its original: they hold for it too, since its files are the same ones."""
        compiled = self.bytecode / self.root.resolve().relative_to("/")
        if compiled.is_dir():
            copy_tree(compiled, self.bytecode / tree.resolve().relative_to("/"))
