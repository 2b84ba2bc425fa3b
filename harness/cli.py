"""The command line: options in, exit code out. What a command does is in `harness.commands`, imported when it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from harness import __version__, platforms
from harness.commands import names
from harness.commands.group import Group
from harness.commands.options import CASE_TIMEOUT_S, RunOptions, Selection

F = TypeVar("F", bound=Callable[..., Any])

_EPILOG = """\b
Exit codes:
  0    clean: every case passed, was unsupported, or failed as expected
  1    a failure that no expectation covers
  2    usage: the command line names something that is not there
  3    the harness could not do its work
  4    measured nothing: no case, or only unsupported ones
  130  interrupted (Ctrl-C); the bundle holds what was known by then

Results go to standard output, progress and messages to standard error.
"""


def _spelled(kind: str, known: tuple[str, ...]) -> Any:
    def check(_ctx: click.Context, _param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
        return names.check_names(kind, value, known)

    return check


def _completes(known: tuple[str, ...]) -> Any:
    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
        return [name for name in known if name.startswith(incomplete)]

    return complete


_SELECTION = (
    click.option(
        "--sut", "suts", multiple=True, metavar="SUT",
        help="sglang==VERSION, a checkout, CHECKOUT@REF or reference; repeatable. [default: the newest release]",
    ),
    click.option(
        "--platform", "platforms", multiple=True, metavar="P", default=platforms.DEFAULT, show_default=True,
        callback=_spelled("platform", platforms.NAMES), shell_complete=_completes(platforms.NAMES),
        help=f"{', '.join(platforms.NAMES)}; repeatable.",
    ),
    click.option(
        "--mode", type=click.Choice(names.MODES), default="auto", show_default=True,
        help="native needs the hardware; auto takes it where it is here and emulates otherwise.",
    ),
    click.option(
        "--suite", "suites", multiple=True, metavar="SUITE", default=names.DEFAULT_SUITES, show_default=True,
        callback=_spelled("suite", names.SUITES), shell_complete=_completes(names.SUITES),
        help=f"{', '.join(names.SUITES)}; repeatable.",
    ),
    click.option("-k", "keyword", metavar="EXPR", default="", help="Only cases that match, in pytest's -k language."),
)  # fmt: skip

_JSON = click.option("--json", "json", metavar="FILE", help="Write one JSON object to FILE; - is standard output.")


_OUT = click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="New folder for this run's bundle.")
_JOBS = click.option(
    "--jobs", type=click.IntRange(min=1), default=None, metavar="N", help="Cells at a time. [default: cores]"
)


def _all_of(options: Sequence[Callable[[F], F]]) -> Callable[[F], F]:
    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


_selection, _without_sut = _all_of(_SELECTION), _all_of(_SELECTION[1:])
_HOW = _all_of(
    (
        _JOBS,
        click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, metavar="N"),
        click.option(
            "--case-timeout", "case_timeout_s", default=CASE_TIMEOUT_S, show_default=True, metavar="S",
            type=click.FloatRange(min=0, min_open=True), help="Seconds after which a case has the outcome timeout.",
        ),
    )
)  # fmt: skip


def _run_options(
    *, out: Path | None, json: str | None, jobs: int | None, seed: int, case_timeout_s: float, **chosen: Any
) -> RunOptions:
    return RunOptions(
        selection=Selection(**chosen),
        out=out,
        json=json,
        jobs=jobs or len(os.sched_getaffinity(0)),
        seed=seed,
        case_timeout_s=case_timeout_s,
        command=("poolparity", *sys.argv[1:]),
    )


@click.group(cls=Group, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="poolparity")
def main() -> None:
    """Run real SGLang code on real or emulated CUDA, ROCm and Ascend, and say what is wrong, and where."""


@main.command()
@_selection
@_OUT
@_JSON
@_HOW
def run(**chosen: Any) -> int:
    """Judge SUTs on platforms, and leave a bundle of what happened."""
    from harness.commands.run import run as command  # noqa: PLC0415 - keeps --help quick

    return command(_run_options(**chosen))


@main.command()
@click.option("--base", required=True, metavar="SUT", help="What the change started from.")
@click.option("--head", required=True, metavar="SUT", help="What the change made of it.")
@_without_sut
@_OUT
@_JSON
@click.option("--markdown", metavar="FILE", help="Write a comment for a pull request to FILE; - is standard output.")
@click.option("--junit", metavar="FILE", help="Write JUnit XML to FILE; - is standard output.")
@_HOW
def gate(base: str, head: str, markdown: str | None, junit: str | None, **chosen: Any) -> int:
    """Judge a change: a verdict for every case on every platform, and one for the change.

    1 is a regression, 3 an answer that could not be had, 4 a side that measured nothing.
    """
    from harness.commands.gate import GateTargets  # noqa: PLC0415 - keeps --help quick
    from harness.commands.gate import gate as command  # noqa: PLC0415

    return command(_run_options(suts=(base, head), **chosen), GateTargets(markdown=markdown, junit=junit))


@main.command()
@click.option("--mode", type=click.Choice(names.MODES), default="auto", show_default=True)
@_OUT
@_JSON
@_JOBS
def story(mode: str, out: Path | None, json: str | None, jobs: int | None) -> int:
    """Tell the six upstream changes that this project grew from, each as a gate would have judged it."""
    from harness.commands.story import load_story  # noqa: PLC0415 - keeps --help quick
    from harness.commands.story import story as command  # noqa: PLC0415

    chosen = {"suites": names.DEFAULT_SUITES, "keyword": "", "suts": (), "platforms": load_story().platforms}
    return command(_run_options(out=out, json=json, jobs=jobs, seed=0, case_timeout_s=60, mode=mode, **chosen))


@main.command()
@click.option("--sut", required=True, metavar="SUT", help="The tree to put bugs into: a release or a checkout.")
@click.option(
    "--mutant", "mutants", multiple=True, metavar="NAME", help="A name or a pattern; repeatable. [default: all of them]"
)
@click.option("--platform", "platforms", multiple=True, metavar="P", callback=_spelled("platform", platforms.NAMES),
              help="Try mutants on these only. [default: as each mutant says]")  # fmt: skip
@click.option("--mode", type=click.Choice(names.MODES), default="auto", show_default=True)
@click.option("--min-killed", type=click.FloatRange(0, 1), default=0.95, show_default=True, metavar="SHARE")
@click.option("--list", "only_list", is_flag=True, help="Name the mutants and run none.")
@_OUT
@_JSON
@_HOW
def mutate(sut: str, mutants: tuple[str, ...], min_killed: float, only_list: bool, **chosen: Any) -> int:
    """Put bugs into a SUT, one at a time, and see which of them the suites kill.

    1 means that fewer than --min-killed died, or that a named one survived or no longer applies.
    """
    from harness.commands.mutate import MutateOptions  # noqa: PLC0415 - keeps --help quick
    from harness.commands.mutate import mutate as command  # noqa: PLC0415

    options = _run_options(suts=(sut,), suites=names.DEFAULT_SUITES, keyword="", **chosen)
    return command(options, MutateOptions(names=mutants, minimum=min_killed, only_list=only_list))


@main.command()
@click.argument("bugs", nargs=-1, metavar="[BUG]…")
@click.option("--mode", type=click.Choice(names.MODES), default="auto", show_default=True)
@_OUT
@_JSON
@_HOW
def replay(bugs: tuple[str, ...], **chosen: Any) -> int:
    """Replay known upstream bugs, each on a tree that has it and on one that has not.

    1 means that one was missed, or seen where it is not.
    """
    from harness.commands.replay import replay as command  # noqa: PLC0415 - keeps --help quick

    options = _run_options(suts=(), platforms=(), suites=names.DEFAULT_SUITES, keyword="", **chosen)
    return command(options, bugs)


def _platform_option(help_text: str) -> Callable[[F], F]:
    def check(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
        return names.check_names("platform", [value], platforms.NAMES)[0]

    return click.option("--platform", required=True, metavar="P", callback=check, help=help_text)


@main.command()
@click.argument("case", metavar="CASE")
@click.option("--good", required=True, metavar="SUT", help="Where the case passes: sglang==X or CHECKOUT@REF.")
@click.option("--bad", required=True, metavar="SUT", help="Where it fails; older than --good when a fix is looked for.")
@_platform_option("The platform to ask it on.")
@click.option("--mode", type=click.Choice(names.MODES), default="auto", show_default=True)
@click.option(
    "--confidence", "threshold", type=click.FloatRange(0.5, 0.9999), default=0.99, show_default=True, metavar="P",
    help="Repeat a flaky case until good or bad is this sure.",
)  # fmt: skip
@_JSON
@_JOBS
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, metavar="N")
def bisect(jobs: int | None, **chosen: Any) -> int:
    """Find the release or commit that broke a case, or fixed it."""
    from harness.commands.bisect import BisectOptions, run_bisect  # noqa: PLC0415 - keeps --help quick

    return run_bisect(BisectOptions(jobs=jobs or os.cpu_count() or 1, **chosen))


@main.command(name="list")
@_selection
@_JSON
def list_cases(json: str | None, **chosen: Any) -> int:
    """Show the cases that a selection would run, and what each would check."""
    from harness.commands.listing import list_cases as command  # noqa: PLC0415 - keeps --help quick

    return command(Selection(**chosen), json)


@main.command()
@_JSON
def doctor(json: str | None) -> int:
    """Show what this machine is, what is emulated on it, and what would be stubbed."""
    from harness.commands.doctor import doctor as command  # noqa: PLC0415 - keeps --help quick

    return command(json)
