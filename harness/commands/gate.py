"""`poolparity gate`: base and head on every platform, a verdict for each case and one for the change."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from rich.console import Console

from harness.bundles import place
from harness.cells import CellRequest
from harness.commands.comparing import compare
from harness.commands.judging import bundle_folder, judge, run_requests
from harness.commands.notes import expectation_notes
from harness.commands.options import RunOptions
from harness.commands.requests import check_selection, make_requests
from harness.commands.resolving import resolve_all
from harness.commands.signals import terminate_as_interrupt
from harness.errors import UsageError
from harness.reports import github, junit, markdown
from harness.reports.as_json import write_json
from harness.reports.gate_terminal import show_gate
from harness.reports.gated import Gated
from harness.reports.progress import note, stderr_console
from harness.reports.writing import STDOUT, check_target, write_text
from harness.sut.spec import SutTree
from harness.verdicts.exit_code import exit_code
from harness.verdicts.gate import exit_code_of, is_bad
from harness.verdicts.outcomes import CellResult


@dataclass(frozen=True, slots=True, kw_only=True)
class GateTargets:
    """Where a gate's answer goes besides the terminal; None writes nothing."""

    markdown: str | None
    junit: str | None


def gate(options: RunOptions, targets: GateTargets) -> int:
    """Judge a change and return the exit code; the options' selection names base and head, in this order."""
    for target, option in ((options.json, "--json"), (targets.markdown, "--markdown"), (targets.junit, "--junit")):
        check_target(target, option)
    if options.out is not None:
        place.check_out(options.out)
    check_selection(options.selection)
    expectation_notes()
    console = stderr_console()
    with terminate_as_interrupt():
        base, head = _two_trees(options.selection.suts, console)
        requests = make_requests(
            options.selection, [base, head], seed=options.seed, case_timeout_s=options.case_timeout_s
        )
        with bundle_folder(options.out, console) as folder:
            results, _ = judge(options, [base, head], requests, folder, console, code_of=exit_code)
            gated = compare(results, base=base, head=head)
            again = _again(requests, results)
            if again:
                note(console, f"{sum(len(r.ids or ()) for r in again)} cases that failed run once more, in fresh cells")
                second = run_requests(again, jobs=options.jobs, out=folder / "again", console=console)
                gated = compare(results, base=base, head=head, again=(again, second))
    _report(options, targets, gated)
    return exit_code_of(gated.verdict)


def _two_trees(names: Sequence[str], console: Console) -> tuple[SutTree, SutTree]:
    if len(set(names)) > 1:
        base, head = resolve_all(names, console)
        if base.root != head.root:
            return base, head
    msg = (
        f"base and head are the same tree ({' and '.join(names)}); expected two, since a tree compared with itself "
        "proves nothing; name another --base or --head"
    )
    raise UsageError(msg)


def _again(requests: Sequence[CellRequest], results: Sequence[CellResult]) -> list[CellRequest]:
    """The cells of the second run: what is bad on head; on base what is bad there only, before it is called fixed."""
    half = len(requests) // 2
    found = []
    for base, head, request_base, request_head in zip(
        results[:half], results[half:], requests[:half], requests[half:], strict=True
    ):
        bad_head = [case.id for case in head.cases if is_bad(case)]
        good_head = {case.id for case in head.cases} - set(bad_head)
        bad_base = [case.id for case in base.cases if is_bad(case) and case.id in good_head]
        for request, ids in ((request_base, bad_base), (request_head, bad_head)):
            if ids:
                found.append(msgspec.structs.replace(request, ids=tuple(ids)))
    return found


def _report(options: RunOptions, targets: GateTargets, gated: Gated) -> None:
    if options.json is not None:
        write_json(options.json, "gate", exit_code_of(gated.verdict), gated.fields())
    if targets.markdown is not None:
        write_text(targets.markdown, markdown.rendered(gated))
    if targets.junit is not None:
        write_text(targets.junit, junit.rendered(gated))
    if STDOUT not in (options.json, targets.markdown, targets.junit):
        show_gate(gated, sys.stdout)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        github.annotate(gated, Path(os.environ.get("GITHUB_WORKSPACE", ".")), sys.stderr)
