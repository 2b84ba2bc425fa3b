"""Reading a bundle, also one whose run was killed: everything up to the last whole line is there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from harness.bundles.manifest import FILE, SCHEMA, CellRecord, Manifest
from harness.errors import InfrastructureError
from harness.verdicts.outcomes import CaseResult

EVENTS = "events.jsonl"

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CellLog:
    """What one cell left behind: its events in order, and the outcomes among them."""

    record: CellRecord
    events: tuple[Event, ...]
    cases: tuple[CaseResult, ...]

    @property
    def finished(self) -> bool:
        """Whether the cell came to its end."""
        return any(event["event"] == "finished" for event in self.events)

    @property
    def unanswered(self) -> tuple[str, ...]:
        """Ids that were collected and have no outcome, in order: the run ended before them, or in them."""
        known = {case.id for case in self.cases}
        collected = [id_ for event in self.events if event["event"] == "collected" for id_ in event["ids"]]
        return tuple(id_ for id_ in dict.fromkeys(collected) if id_ not in known)


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle in memory. `manifest.status` is "running" for a run that was killed (or still goes on)."""

    folder: Path
    manifest: Manifest
    cells: tuple[CellLog, ...]


def read_bundle(folder: Path) -> Bundle:
    """Read a bundle; InfrastructureError, with the file and the line, when it is not one or is broken."""
    manifest = _read_manifest(folder / FILE)
    cells = tuple(_read_cell(folder / "cells" / record.folder, record) for record in manifest.cells)
    return Bundle(folder, manifest, cells)


def _read_manifest(path: Path) -> Manifest:
    try:
        data = path.read_bytes()
    except OSError as reason:
        msg = f"no bundle: cannot read {str(path)!r} ({reason.strerror}); expected a folder that a run wrote with --out"
        raise InfrastructureError(msg) from reason
    try:
        schema = msgspec.json.decode(data, type=_SchemaOnly).schema
        if schema != SCHEMA:
            msg = f"{str(path)!r} has schema {schema}; expected {SCHEMA}; read it with the poolparity that wrote it"
            raise InfrastructureError(msg)
        return msgspec.json.decode(data, type=Manifest)
    except msgspec.MsgspecError as reason:
        msg = f"broken bundle: {str(path)!r}: {reason}; expected a manifest of schema {SCHEMA}; repeat the run"
        raise InfrastructureError(msg) from reason


class _SchemaOnly(msgspec.Struct):
    schema: int


def _read_cell(folder: Path, record: CellRecord) -> CellLog:
    path = folder / EVENTS
    events = tuple(_events(path)) if path.exists() else ()
    cases = tuple(_case(path, event) for event in events if event["event"] == "outcome")
    return CellLog(record, events, cases)


def _events(path: Path) -> list[Event]:
    """Decode the lines of an event file. A last line without its newline was cut by a kill, and is left out."""
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    events: list[Event] = []
    for number, line in enumerate(filter(None, whole.split(b"\n")), start=1):
        try:
            event = msgspec.json.decode(line, type=dict[str, Any])
        except msgspec.MsgspecError as reason:
            raise _broken(path, number, str(reason)) from reason
        if not isinstance(event.get("event"), str):
            raise _broken(path, number, "no field 'event'")
        events.append(event)
    return events


def _case(path: Path, event: Event) -> CaseResult:
    try:
        return msgspec.convert(event, type=CaseResult)
    except msgspec.ValidationError as reason:
        msg = f"broken bundle: {str(path)!r}: outcome of {event.get('id')!r}: {reason}; repeat the run"
        raise InfrastructureError(msg) from reason


def _broken(path: Path, number: int, why: str) -> InfrastructureError:
    msg = f"broken bundle: {str(path)!r} line {number}: {why}; expected one JSON object a line; repeat the run"
    return InfrastructureError(msg)
