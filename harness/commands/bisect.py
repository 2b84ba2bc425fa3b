"""`poolparity bisect`: the release or commit at which a case changed, with the message there and the suspects."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from harness import sut
from harness.commands.bisecting import Asker, check_case
from harness.commands.judging import bundle_folder
from harness.commands.resolving import check_native
from harness.commands.signals import terminate_as_interrupt
from harness.errors import UsageError
from harness.reports.as_json import STDOUT, check_target, write_json
from harness.reports.bisect import Found, show_bisect
from harness.reports.progress import stderr_console
from harness.sut.history import commits_between, is_release, releases_between
from harness.verdicts.bisect import Line, Straight, bisect
from harness.verdicts.exit_code import CLEAN


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectOptions:
    """One case and the two ends. `good` may be the newer one: then the fix is looked for."""

    case: str
    good: str
    bad: str
    platform: str
    mode: str
    threshold: float
    jobs: int
    seed: int
    json: str | None


def run_bisect(options: BisectOptions) -> int:
    """Search, and return 0 when the answer is known."""
    check_target(options.json)
    check_native(options.mode, (options.platform,))
    console = stderr_console()
    with terminate_as_interrupt():
        line = make_line(options.good, options.bad)
        with bundle_folder(None, console) as folder:
            check_case(options.case, sut.resolve(line.new), options.platform, options.mode, folder / "list")
            asker = Asker(
                options.case, options.platform, options.mode, jobs=options.jobs, seed=options.seed, folder=folder
            )
            asker.console = console
            answer = bisect(line, asker, threshold=options.threshold)
            _check_direction(options, line, fails_at_new=answer.fails_at_new)
    found = Found(options.case, options.platform, answer, asker.results, suspects(asker, answer.before, answer.first))
    if options.json is not None:
        write_json(options.json, "bisect", CLEAN, {**found.fields(), "tried": _tried(asker)})
    if options.json != STDOUT:
        show_bisect(found, sys.stdout)
    return CLEAN


def make_line(good: str, bad: str) -> Line:
    """Return the points between two ends, the older first."""
    if good == bad:
        msg = f"--good and --bad are both {good}; expected two different ends; name another one"
        raise UsageError(msg)
    if is_release(good) and is_release(bad):
        return Straight(releases_between(good, bad))
    return commits_between(good, bad)


def _check_direction(options: BisectOptions, line: Line, *, fails_at_new: bool) -> None:
    """UsageError where the end that was called good is the one that fails."""
    good_is_new = _same(options.good, line.new)
    if fails_at_new == good_is_new:
        msg = (
            f"the case fails on {options.good}, which was named --good, and passes on {options.bad}; expected it the "
            "other way round; exchange --good and --bad"
        )
        raise UsageError(msg)


def _same(name: str, point: str) -> bool:
    return sut.resolve(name).identity == sut.resolve(point).identity


def suspects(asker: Asker, before: str, first: str) -> list[str]:
    """Return the files of the SUT that the case ran on either side of the change and that differ between the two."""
    roots = [asker.trees[point].root for point in (before, first)]
    files = sorted({*asker.touched.get(before, ()), *asker.touched.get(first, ())})
    changed = []
    for name in files:
        contents = [
            (root / name).read_bytes() if root is not None and (root / name).is_file() else None for root in roots
        ]
        if contents[0] != contents[1]:
            changed.append(name)
    return changed


def _tried(asker: Asker) -> list[dict[str, Any]]:
    return [{"sut": point, "outcome": outcome} for point, outcome in asker.tried]
