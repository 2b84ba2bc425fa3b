"""Trying mutants: what is green on the SUT itself must stay green, on one platform after the other."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from rich.console import Console

from harness.cells import CellRequest, run_cells
from harness.commands.judging import run_requests
from harness.commands.options import RunOptions
from harness.commands.specimens import Specimen
from harness.emulation import bytecode_folder
from harness.errors import InfrastructureError
from harness.reports.progress import note
from harness.sut.cache import cache_dir
from harness.sut.mutation.systematic import diff_of
from harness.sut.mutation.workshop import Workshop
from harness.sut.spec import SutTree
from harness.verdicts.mutants import Fate, MutantResult
from harness.verdicts.outcomes import CaseResult, CellResult, Outcome

_BATCH = 24
_CASE_TIMEOUT_S = 20.0
_GREEN = (Outcome.PASS, Outcome.UNSUPPORTED)


class Killing:
    """Tries the mutants of one SUT. Everything that runs leaves its events in the bundle `folder`."""

    def __init__(self, tree: SutTree, options: RunOptions, folder: Path, console: Console) -> None:
        self.tree = tree
        self.root = tree.root or Path()
        self.options = options
        self.folder = folder
        self.console = console
        self.green: dict[str, tuple[str, ...]] = {}
        self.results: dict[str, MutantResult] = {}

    def run(self, specimens: Sequence[Specimen]) -> list[MutantResult]:
        """Return what became of each mutant, in order."""
        alive = [s for s in specimens if self._applies(s)]
        self._baseline(alive)
        for turn in range(max((len(self._platforms(s)) for s in alive), default=0)):
            trying = [s for s in alive if s.name not in self.results and turn < len(self._platforms(s))]
            note(self.console, f"{len(trying)} mutants to kill, on platform {turn + 1} of each")
            self._try(trying, turn)
        for specimen in alive:
            if specimen.name not in self.results:
                self._survived(specimen)
        return [self.results[s.name] for s in specimens]

    def _platforms(self, specimen: Specimen) -> tuple[str, ...]:
        asked = self.options.selection.platforms
        return tuple(p for p in specimen.platforms if not asked or p in asked)

    def _changed(self, specimen: Specimen) -> str | None:
        path = self.root / specimen.file
        return specimen.change(path.read_text()) if path.is_file() else None

    def _applies(self, specimen: Specimen) -> bool:
        if not specimen.named or self._changed(specimen) is not None:  # the others were found by being applied
            return True
        why = f"finds nothing to change in {specimen.file}; refresh the mutant or drop it"
        self._note(specimen, Fate.NOT_APPLICABLE, why=why)
        return False

    def _note(self, specimen: Specimen, fate: Fate, **fields: str) -> None:
        self.results[specimen.name] = MutantResult(
            name=specimen.name,
            operator=specimen.operator,
            file=specimen.file,
            outcome=fate,
            named=specimen.named,
            wrongly_marked=fate is Fate.KILLED and bool(specimen.equivalent),
            **fields,
        )

    def _survived(self, specimen: Specimen) -> None:
        diff = diff_of(specimen.file, (self.root / specimen.file).read_text(), self._changed(specimen) or "")
        fate = Fate.EQUIVALENT if specimen.equivalent else Fate.SURVIVED
        self._note(specimen, fate, why=specimen.equivalent, diff=diff)

    def _baseline(self, specimens: Sequence[Specimen]) -> None:
        """Learn what is green on the SUT itself: a case that is red without the mutant cannot kill it."""
        suites = {p: tuple(s) for p, s in self._suites(specimens).items()}
        requests = [self._request(self.tree, platform, names) for platform, names in suites.items()]
        results = run_requests(requests, jobs=self.options.jobs, out=self.folder / "sut", console=self.console)
        for result in results:
            ids = tuple(case.id for case in result.cases if case.outcome in _GREEN)
            if not ids:
                msg = (
                    f"{self.tree.name} is green in no case on {result.platform}; expected cases that a mutant could "
                    "turn red; run it first and see what is wrong"
                )
                raise InfrastructureError(msg)
            self.green[result.platform] = ids

    def _suites(self, specimens: Sequence[Specimen]) -> dict[str, dict[str, None]]:
        found: dict[str, dict[str, None]] = {}
        for specimen in specimens:
            for platform in self._platforms(specimen):
                found.setdefault(platform, {}).update(dict.fromkeys(specimen.suites))
        return found

    def _request(self, tree: SutTree, platform: str, suites: tuple[str, ...], **fields: object) -> CellRequest:
        return CellRequest(
            sut=tree,
            platform=platform,
            mode=self.options.selection.mode,
            suites=suites,
            seed=self.options.seed,
            case_timeout_s=_CASE_TIMEOUT_S,
            **fields,  # type: ignore[arg-type]  # ids and stop_at_red, as CellRequest has them
        )

    def _try(self, specimens: Sequence[Specimen], turn: int) -> None:
        waiting = iter(specimens)
        place = cache_dir() / "mutants" / f"{self.folder.name}-{os.getpid()}-{turn}"
        with Workshop(self.root, place, bytecode_folder()) as workshop:
            for number, batch in enumerate(_batches(waiting)):
                requests = [self._trial(s, turn, workshop, bench) for bench, s in enumerate(batch)]
                out = self.folder / f"try-{turn}-{number:03d}"
                results = run_cells(requests, jobs=self.options.jobs, out=out, on_event=lambda _cell, _event: None)
                for specimen, result in zip(batch, results, strict=True):
                    self._judge(specimen, result)
                note(self.console, f"  {len(self.results)} of {len(self.results) + len(specimens)} judged")

    def _trial(self, specimen: Specimen, turn: int, workshop: Workshop, bench: int) -> CellRequest:
        root = workshop.tree(bench, specimen.file, self._changed(specimen) or "")
        tree = SutTree(name=specimen.name, root=root, version=self.tree.version, identity=specimen.name)
        platform = self._platforms(specimen)[turn]
        ids = tuple(i for i in self.green[platform] if i.partition("/")[0] in specimen.suites)
        return self._request(tree, platform, specimen.suites, ids=ids, stop_at_red=True)

    def _judge(self, specimen: Specimen, result: CellResult) -> None:
        killer = next((case for case in result.cases if case.outcome not in _GREEN), None)
        if killer is not None:
            self._killed(specimen, result.platform, killer)

    def _killed(self, specimen: Specimen, platform: str, case: CaseResult) -> None:
        how = "" if case.outcome is Outcome.FAIL else f" ({case.outcome})"
        self._note(
            specimen,
            Fate.KILLED,
            killed_by=f"{platform}: {case.id}{how}",
            why=case.message,
            location=case.location,
        )


def _batches(specimens: Iterator[Specimen]) -> Iterator[list[Specimen]]:
    while batch := list(islice(specimens, _BATCH)):
        yield batch
