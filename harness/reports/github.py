"""What GitHub Actions understands: annotations on the SUT's own lines, as workflow commands on standard error."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from harness.reports.gated import Folded, Gated
from harness.reports.plain import plain
from harness.sut.spec import SutTree
from harness.verdicts.gate import Verdict

# GitHub shows ten annotations of a kind for a step and drops the rest.
LIMIT = 10
_LEVELS = {Verdict.REGRESSION: "error", Verdict.INCONCLUSIVE: "warning", Verdict.STILL_FAILING: "notice"}


def annotate(gated: Gated, workspace: Path, stream: TextIO) -> None:
    """Write one annotation for each group of cases that is a regression, inconclusive or still failing."""
    entries = [entry for entry in gated.notable() if entry.verdict in _LEVELS]
    for level in ("error", "warning", "notice"):
        chosen = [entry for entry in entries if _level(entry) == level]
        stream.writelines(_command(level, entry, source_folder(gated.head, workspace)) for entry in chosen[:LIMIT])


def _level(entry: Folded) -> str:
    return "notice" if entry.expectation else _LEVELS[entry.verdict]


def _command(level: str, entry: Folded, folder: str | None) -> str:
    path, _, line = entry.location.rpartition(":")
    place = f"file={_property(f'{folder}{path}')},line={line}," if path and folder is not None else ""
    title = f"poolparity: {entry.title} on {', '.join(entry.platforms)}"
    message = f"{plain(entry.message)}\n{sum(entry.platforms.values())} cases, first {next(iter(entry.ids))}"
    return f"::{level} {place}title={_property(title)}::{_data(message)}\n"


def source_folder(tree: SutTree, workspace: Path) -> str | None:
    """Return the path, from the workspace, of the folder that holds `sglang/`, with a slash; None outside of it.

    Of a git ref it is the checkout that was named: the tree itself lies in the cache.
    """
    if tree.root is None:
        return None
    path, at, _ = tree.name.rpartition("@")
    root = tree.root
    if at and (checkout := Path(path).expanduser()).is_dir():
        inside = [part for part in ("python",) if (checkout / part).is_dir()]
        root = checkout.joinpath(*inside)
    root, workspace = root.resolve(), workspace.resolve()
    if not root.is_relative_to(workspace):
        return None
    inside_workspace = root.relative_to(workspace).as_posix()
    return "" if inside_workspace == "." else f"{inside_workspace}/"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(plain(text)).replace(":", "%3A").replace(",", "%2C")
