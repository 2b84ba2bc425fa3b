"""`poolparity mutate`: puts bugs into a SUT, one at a time, and sees which of them the suites kill."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from harness.bundles import place
from harness.commands.judging import bundle_folder
from harness.commands.mutation_runs import Killing
from harness.commands.options import RunOptions
from harness.commands.resolving import resolve_all
from harness.commands.signals import terminate_as_interrupt
from harness.commands.specimens import Specimen, choose
from harness.errors import UsageError
from harness.reports.as_json import STDOUT, check_target, write_json
from harness.reports.mutants import show_mutants
from harness.reports.progress import note, stderr_console
from harness.verdicts.mutants import MutantResult, exit_code_of, killed_share


@dataclass(frozen=True, slots=True, kw_only=True)
class MutateOptions:
    """`names` are patterns; empty means all. `minimum` is the share that must be killed."""

    names: tuple[str, ...]
    minimum: float
    only_list: bool


def mutate(options: RunOptions, wanted: MutateOptions) -> int:
    """Run the suites on every mutant of one SUT until a case kills it; returns the exit code."""
    check_target(options.json)
    if options.out is not None:
        place.check_out(options.out)
    console = stderr_console()
    with terminate_as_interrupt():
        tree = resolve_all(options.selection.suts, console)[0]
        if tree.root is None:
            msg = "mutate --sut reference: expected a release or a checkout; for the reference run nox -s mutants"
            raise UsageError(msg)
        specimens = choose(tree, wanted.names, platforms=options.selection.platforms)
        if wanted.only_list:
            _list(specimens)
            return 0
        with bundle_folder(options.out, console) as folder:
            results = Killing(tree, options, folder, console).run(specimens)
    code = exit_code_of(results, wanted.minimum)
    _report(options, results, code)
    note(console, f"killed {killed_share(results):.1%} of the mutants that are not equivalent")
    return code


def _list(specimens: Sequence[Specimen]) -> None:
    for specimen in specimens:
        sys.stdout.write(f"{specimen.name}\n")


def _report(options: RunOptions, results: Sequence[MutantResult], code: int) -> None:
    if options.json is not None:
        fields = {"sut": options.selection.suts[0], "killed_share": killed_share(results), "mutants": results}
        write_json(options.json, "mutate", code, fields)
    if options.json != STDOUT:
        show_mutants(results, sys.stdout)
