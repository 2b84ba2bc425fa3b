"""Running cells with all that goes with it: a bundle, its manifest, and what a person sees meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from harness import cells
from harness.bundles import place
from harness.bundles.write import close_manifest, write_manifest
from harness.cells import CellRequest
from harness.commands.options import RunOptions
from harness.commands.recording import make_manifest
from harness.reports.progress import Progress, note
from harness.sut.spec import SutTree
from harness.verdicts.outcomes import CellResult


@contextmanager
def bundle_folder(out: Path | None, console: Console) -> Iterator[Path]:
    """Make the folder of this run's bundle, and say where it is at the end; prune those that nobody gave a place."""
    folder = place.make(out or place.runs_dir() / place.fresh_name())
    try:
        yield folder
    except BaseException:
        note(console, f"bundle, up to here: {folder}")
        raise
    if out is None:
        place.prune(place.runs_dir())
    note(console, f"bundle: {folder}")


def run_requests(requests: Sequence[CellRequest], *, jobs: int, out: Path, console: Console) -> list[CellResult]:
    """Run cells and show their progress."""
    names = [f"{request.sut.name} {request.platform}" for request in requests]
    with Progress(names, console) as progress:
        return cells.run_cells(requests, jobs=jobs, out=out, on_event=progress.on_event)


def judge(
    options: RunOptions,
    trees: Sequence[SutTree],
    requests: Sequence[CellRequest],
    folder: Path,
    console: Console,
    *,
    code_of: Callable[[list[CellResult]], int],
) -> tuple[list[CellResult], int]:
    """Run the cells of a bundle between its two manifests; return the results and what `code_of` makes of them."""
    manifest = make_manifest(options, trees, requests)
    write_manifest(folder, manifest)
    try:
        results = run_requests(requests, jobs=options.jobs, out=folder, console=console)
    except BaseException:
        close_manifest(folder, manifest, "interrupted", None)
        raise
    code = code_of(results)
    close_manifest(folder, manifest, "complete", code)
    return results, code
