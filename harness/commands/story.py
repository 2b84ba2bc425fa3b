"""`poolparity story`: the six upstream changes that this project grew from, each judged by a gate."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.cells import CellRequest
from harness.commands.comparing import compare
from harness.commands.judging import bundle_folder, judge
from harness.commands.options import RunOptions
from harness.commands.requests import make_requests
from harness.commands.resolving import resolve_all
from harness.commands.signals import terminate_as_interrupt
from harness.data import fixtures_dir
from harness.errors import UsageError
from harness.reports.as_json import STDOUT, check_target, write_json
from harness.reports.progress import stderr_console
from harness.reports.story import Chapter, show_story
from harness.sut.mutation import NamedMutant, load_named, write_named
from harness.sut.spec import SutTree
from harness.verdicts.exit_code import CLEAN, exit_code
from harness.verdicts.outcomes import CellResult

Key = tuple[str, ...]


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One change: its number, what it did, and the mutants that its tree has."""

    change: str
    what: str
    mutants: tuple[str, ...]


class Story(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """fixtures/story.toml; the first step is where the story begins."""

    sut: str
    platforms: tuple[str, ...]
    step: tuple[Step, ...]


def load_story() -> Story:
    """Read the story; UsageError names what is wrong in its file."""
    path = fixtures_dir() / "story.toml"
    try:
        return msgspec.toml.decode(path.read_bytes(), type=Story)
    except (msgspec.DecodeError, OSError) as reason:
        msg = f"{path}: {reason}; expected sut, platforms and [[step]] tables; correct the file"
        raise UsageError(msg) from reason


def story(options: RunOptions) -> int:
    """Build the trees, run each once on every platform, gate each step, and show what would have been said."""
    check_target(options.json)
    tale = load_story()
    console = stderr_console()
    with terminate_as_interrupt(), tempfile.TemporaryDirectory(prefix="poolparity-story-") as scratch:
        release = resolve_all([tale.sut], console)[0]
        trees = _trees(tale.step, release, Path(scratch))
        requests = make_requests(options.selection, list(trees.values()), seed=options.seed)
        with bundle_folder(options.out, console) as folder:
            results, _ = judge(options, list(trees.values()), requests, folder, console, code_of=exit_code)
    chapters = _chapters(tale, trees, _by_tree(requests, results))
    if options.json is not None:
        write_json(options.json, "story", CLEAN, {"sut": tale.sut, "steps": [chapter.fields() for chapter in chapters]})
    if options.json != STDOUT:
        show_story(chapters, sys.stdout)
    return CLEAN


def _trees(steps: Sequence[Step], release: SutTree, folder: Path) -> dict[Key, SutTree]:
    """Write each tree once, however many steps have it."""
    known = {mutant.name: mutant for mutant in load_named(fixtures_dir() / "mutants")}
    trees: dict[Key, SutTree] = {(): release}
    for step in steps:
        if step.mutants not in trees:
            mutants = [_known(known, name) for name in step.mutants]
            root = write_named(_root(release), folder / f"tree{len(trees)}", mutants)
            name = f"{release.name} as after {step.change}"
            identity = f"{release.identity} with {', '.join(step.mutants)}"
            trees[step.mutants] = SutTree(name=name, root=root, version=release.version, identity=identity)
    return trees


def _known(known: dict[str, NamedMutant], name: str) -> NamedMutant:
    if name not in known:
        msg = f"fixtures/story.toml: unknown mutant {name!r}; expected one of {', '.join(known)}; correct the story"
        raise UsageError(msg)
    return known[name]


def _root(tree: SutTree) -> Path:
    if tree.root is None:
        msg = "the story's sut is the reference; expected a release of SGLang; correct fixtures/story.toml"
        raise UsageError(msg)
    return tree.root


def _by_tree(requests: Sequence[CellRequest], results: Sequence[CellResult]) -> dict[str, list[CellResult]]:
    found: dict[str, list[CellResult]] = {}
    for request, result in zip(requests, results, strict=True):
        found.setdefault(request.sut.name, []).append(result)
    return found


def _chapters(tale: Story, trees: dict[Key, SutTree], cells: dict[str, list[CellResult]]) -> list[Chapter]:
    """Gate every step against the one before; what passed at the beginning and fails now is not done with."""
    start = trees[tale.step[0].mutants]
    chapters = []
    for before, step in zip(tale.step, tale.step[1:], strict=False):
        base, head = trees[before.mutants], trees[step.mutants]
        gated = compare([*cells[base.name], *cells[head.name]], base=base, head=head)
        since_start = compare([*cells[start.name], *cells[head.name]], base=start, head=head)
        chapters.append(Chapter(step.change, step.what, gated, since_start))
    return chapters
