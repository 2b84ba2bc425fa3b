"""Asking one case of one SUT, again and again, each time in a fresh cell."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from harness import sut
from harness.cells import CellRequest, run_cells
from harness.cells.events import Event
from harness.errors import UsageError
from harness.reports.progress import note
from harness.sut.spec import SutTree
from harness.verdicts.outcomes import CaseResult, Outcome


class Asker:
    """Runs a case on SUTs, and keeps what was seen: outcomes, the last result, the SUT's files that ran."""

    def __init__(self, case: str, platform: str, mode: str, *, jobs: int, seed: int, folder: Path) -> None:
        self.case = case
        self.platform = platform
        self.mode = mode
        self.jobs = jobs
        self.seed = seed
        self.folder = folder
        self.console: Console | None = None
        self.tried: list[tuple[str, str]] = []
        self.results: dict[str, CaseResult] = {}
        self.touched: dict[str, tuple[str, ...]] = {}
        self.trees: dict[str, SutTree] = {}

    def __call__(self, point: str, runs: int) -> list[Outcome]:
        """Return the outcome of each of `runs` runs; `error` where the SUT does not have the case."""
        tree = self.trees.setdefault(point, sut.resolve(point))
        request = CellRequest(
            sut=tree,
            platform=self.platform,
            mode=self.mode,
            suites=(self.case.partition("/")[0],),
            seed=self.seed,
            ids=(self.case,),
            traced=True,
        )
        out = self.folder / f"{len(self.tried):03d}"

        def on_event(_cell: int, event: Event) -> None:
            if event["event"] == "touched":
                self.touched[point] = tuple(event["files"])

        results = run_cells([request] * runs, jobs=self.jobs, out=out, on_event=on_event)
        cases = [case for result in results for case in result.cases if case.id == self.case]
        outcomes = [case.outcome for case in cases] or [Outcome.ERROR]
        for case in cases:
            self.results[point] = case
        self.tried += [(point, str(outcome)) for outcome in outcomes]
        if self.console is not None:
            note(self.console, f"{point}: {', '.join(map(str, outcomes))}")
        return outcomes


def check_case(case: str, tree: SutTree, platform: str, mode: str, folder: Path) -> None:
    """UsageError, with the nearest names, for a case that a SUT does not have on a platform."""
    request = CellRequest(sut=tree, platform=platform, mode=mode, collect_only=True)
    ids: list[str] = []

    def on_event(_cell: int, event: Event) -> None:
        if event["event"] == "collected":
            ids.extend(event["ids"])

    run_cells([request], jobs=1, out=folder, on_event=on_event)
    if case not in ids:
        near = nearest(case, ids)
        hint = f"; the nearest are {', '.join(near)}" if near else ""
        msg = f"{tree.name} has no case {case!r} on {platform}{hint}; expected an id as `poolparity list` prints it"
        raise UsageError(msg)


def nearest(case: str, ids: Sequence[str]) -> list[str]:
    """Return the ids that look most like a wrong one."""
    return difflib.get_close_matches(case, ids, n=3, cutoff=0.5)
