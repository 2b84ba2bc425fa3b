"""`poolparity doctor`: one screen about this machine. It looks, and changes nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from harness import sut
from harness.bundles.manifest import host_facts, versions
from harness.commands.examination import Machine, PlatformReport, examine_all
from harness.reports.as_json import STDOUT, check_target, write_json
from harness.reports.plain import as_text
from harness.reports.terminal import console_for
from harness.sut.cache import cache_dir
from harness.verdicts.exit_code import CLEAN


def doctor(json: str | None) -> int:
    """Show the machine and return 0: whatever is found is an answer."""
    check_target(json)
    machine = look()
    if json is not None:
        write_json(json, "doctor", CLEAN, msgspec.to_builtins(machine))
    if json != STDOUT:
        show(machine, console_for(sys.stdout))
    return CLEAN


def look() -> Machine:
    """Find everything out; packages are judged for the newest cached release, or for releases in general."""
    releases = sut.cached_releases()
    root = sut.resolve(releases[-1], offline=True).root if releases else None
    return Machine(
        versions=versions(),
        host=host_facts(),
        cache=str(cache_dir()),
        releases=releases,
        platforms=examine_all(root or Path()),
    )


def show(machine: Machine, console: Console) -> None:
    """Print the screen."""
    facts = Table.grid(padding=(0, 2))
    host = machine.host
    facts.add_row("machine", as_text(f"{host.system}, {host.cores} cores, {host.memory_mb / 1024:.1f} GiB"))
    facts.add_row("versions", as_text(", ".join(f"{name} {version}" for name, version in machine.versions.items())))
    facts.add_row("cache", as_text(machine.cache))
    facts.add_row("releases", as_text(", ".join(machine.releases) or "none yet: the first run fetches one"))
    console.print(facts)
    console.print()
    console.print(_platforms(machine.platforms))
    _show_packages(machine.platforms, console)


def _platforms(reports: Iterable[PlatformReport]) -> Table:
    table = Table("platform", "mode", "because", "device", "SGLang's packages")
    for report in reports:
        found = report.packages
        table.add_row(
            as_text(f"{report.name}\n{report.title}"),
            as_text(report.mode, "green" if report.mode == "native" else "cyan"),
            as_text(report.reason),
            as_text(f"{report.device}\n{report.device_reason}"),
            as_text(f"{len(found.here)} here, {len(found.stubbed)} stubbed\ndoubles of {', '.join(found.emulated)}"),
        )
    return table


def _show_packages(reports: list[PlatformReport], console: Console) -> None:
    here = sorted(set().union(*(report.packages.here for report in reports)))
    everywhere = set.intersection(*(set(report.packages.stubbed) for report in reports))
    _paragraph(console, "Packages of SGLang's that are here", here)
    _paragraph(console, "Stubbed on every platform (they serve while modules load, and raise when called)", everywhere)
    for report in reports:
        if own := set(report.packages.stubbed) - everywhere:
            _paragraph(console, f"Stubbed also on {report.name}", own)


def _paragraph(console: Console, title: str, names: Iterable[str]) -> None:
    console.print(Text(f"\n{title}:", style="bold"))
    console.print(Padding(as_text(", ".join(sorted(names)) or "none"), (0, 0, 0, 2)))
