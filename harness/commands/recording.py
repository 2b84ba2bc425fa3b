"""The manifest of a run, from its options, its SUTs and its cells."""

from __future__ import annotations

from collections.abc import Sequence

from harness.bundles.manifest import CellRecord, Manifest, SutRecord, host_facts, versions
from harness.bundles.write import now
from harness.cells import CellRequest, folder_name
from harness.commands.options import RunOptions
from harness.sut.spec import SutTree


def make_manifest(options: RunOptions, trees: Sequence[SutTree], requests: Sequence[CellRequest]) -> Manifest:
    """Return the manifest of a run that starts now."""
    selection = options.selection
    return Manifest(
        command=list(options.command),
        started=now(),
        mode=selection.mode,
        platforms=list(selection.platforms),
        suites=list(selection.suites),
        keyword=selection.keyword,
        seed=options.seed,
        case_timeout_s=options.case_timeout_s,
        suts=[SutRecord(name=tree.name, version=tree.version, identity=tree.identity) for tree in trees],
        cells=[_record(number, request) for number, request in enumerate(requests)],
        versions=versions(),
        host=host_facts(),
    )


def _record(number: int, request: CellRequest) -> CellRecord:
    return CellRecord(
        folder=folder_name(number, request),
        sut=request.sut.name,
        platform=request.platform,
        mode=request.mode,
    )
