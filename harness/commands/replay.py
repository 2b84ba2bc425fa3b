"""`poolparity replay`: every known bug on a tree that has it and on one that has not."""

from __future__ import annotations

import fnmatch
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from harness.bundles import place
from harness.cells import CellRequest
from harness.commands.judging import bundle_folder, run_requests
from harness.commands.names import DEFAULT_SUITES, check_names
from harness.commands.options import RunOptions
from harness.commands.resolving import resolve_all
from harness.commands.signals import terminate_as_interrupt
from harness.data import fixtures_dir
from harness.errors import UsageError
from harness.reports.as_json import STDOUT, check_target, write_json
from harness.reports.progress import stderr_console
from harness.reports.replay import Replayed, show_replay
from harness.sut.bugs import Bug, Show, load_bugs
from harness.sut.mutation import load_named, write_named
from harness.sut.spec import SutTree
from harness.verdicts.outcomes import CaseResult, CellResult
from harness.verdicts.replay import Seen, exit_code_of, judge, symptomatic, worst

Cells = dict[tuple[str, str], CellResult]


def replay(options: RunOptions, names: Sequence[str]) -> int:
    """Replay bugs (all of them, without names) and return the exit code."""
    check_target(options.json)
    if options.out is not None:
        place.check_out(options.out)
    bugs = load_bugs(fixtures_dir() / "bugs")
    if names:
        wanted = check_names("bug", names, [bug.id for bug in bugs])
        bugs = [bug for bug in bugs if bug.id in wanted]
    console = stderr_console()
    with terminate_as_interrupt(), tempfile.TemporaryDirectory(prefix="poolparity-replay-") as scratch:
        shows = [show for bug in bugs for show in bug.show]
        plain = sorted({name for show in shows for name in (show.good, show.bad) if name})
        trees = {tree.name: tree for tree in (resolve_all(plain, console) if plain else [])}
        trees |= _mutants(shows, trees, Path(scratch))
        requests = [
            CellRequest(
                sut=trees[sut], platform=platform, mode=options.selection.mode, suites=suites, seed=options.seed
            )
            for (sut, platform), suites in _cells(shows).items()
        ]
        with bundle_folder(options.out, console) as folder:
            results = run_requests(requests, jobs=options.jobs, out=folder, console=console)
    cells = {(r.sut.name, r.platform): result for r, result in zip(requests, results, strict=True)}
    replayed = [_judge(bug, cells) for bug in bugs]
    code = exit_code_of(entry.verdict for entry in replayed)
    if options.json is not None:
        write_json(options.json, "replay", code, {"bugs": [entry.fields() for entry in replayed]})
    if options.json != STDOUT:
        show_replay(replayed, sys.stdout)
    return code


def bad_name(show: Show) -> str:
    """Return the name of the tree that has the bug."""
    return show.bad or f"{show.good} with {', '.join(show.mutants)}"


def _mutants(shows: Sequence[Show], trees: dict[str, SutTree], folder: Path) -> dict[str, SutTree]:
    known = {mutant.name: mutant for mutant in load_named(fixtures_dir() / "mutants")}
    found: dict[str, SutTree] = {}
    for show in shows:
        name = bad_name(show)
        if show.bad or name in found:
            continue
        unknown = [mutant for mutant in show.mutants if mutant not in known]
        base = trees[show.good]
        if unknown or base.root is None:
            msg = f"a bug is shown by the mutants {', '.join(show.mutants)} of {show.good}; expected named mutants"
            raise UsageError(msg)
        root = write_named(base.root, folder / f"tree{len(found)}", [known[mutant] for mutant in show.mutants])
        found[name] = SutTree(name=name, root=root, version=base.version, identity=name)
    return found


def _cells(shows: Sequence[Show]) -> dict[tuple[str, str], tuple[str, ...]]:
    """One cell for each tree and platform, with the suites that some bug wants there."""
    found: dict[tuple[str, str], set[str]] = {}
    for show in shows:
        suites = {pattern.partition("/")[0] for pattern in show.case}
        for sut in (bad_name(show), show.good):
            found.setdefault((sut, show.platform), set()).update(suites)
    return {cell: tuple(s for s in DEFAULT_SUITES if s in suites) for cell, suites in found.items()}


def _cases(show: Show, cell: CellResult) -> list[CaseResult]:
    patterns = [pattern.replace("[", "[[]") for pattern in show.case]
    return [case for case in cell.cases if any(fnmatch.fnmatchcase(case.id, pattern) for pattern in patterns)]


def _judge(bug: Bug, cells: Cells) -> Replayed:
    if not bug.show:
        return Replayed(bug, Seen.NOT_REPLAYABLE, f"{bug.needs}: {bug.why}", (), "", "", "")
    sides = [
        (show, _cases(show, cells[bad_name(show), show.platform]), _cases(show, cells[show.good, show.platform]))
        for show in bug.show
    ]
    judged = [(show, bad, *judge(bad, good, show.symptom)) for show, bad, good in sides]
    verdict = worst(seen for _, _, seen, _ in judged)
    show, bad, _, why = next(entry for entry in judged if entry[2] is verdict)
    return Replayed(
        bug=bug,
        verdict=verdict,
        why=why,
        cases=tuple(case.id for case in symptomatic(bad, show.symptom)),
        bad=bad_name(show),
        good=show.good,
        platform=", ".join(dict.fromkeys(entry.platform for entry in bug.show)),
    )
