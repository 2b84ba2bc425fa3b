import msgspec
import pytest

from harness.bundles import read_bundle
from harness.bundles.manifest import FILE, CellRecord, Manifest, SutRecord, host_facts, versions
from harness.bundles.write import close_manifest, now, replace_file, write_manifest
from harness.errors import InfrastructureError

IDS = ["kv/backup[a]", "kv/backup[b]"]


@pytest.fixture
def manifest():
    return Manifest(
        command=["poolparity", "run"],
        started=now(),
        mode="auto",
        platforms=["ascend"],
        suites=["kv"],
        keyword="",
        seed=0,
        case_timeout_s=60.0,
        suts=[SutRecord(name="reference", version=None, identity="reference")],
        cells=[CellRecord(folder="00-reference-ascend", sut="reference", platform="ascend", mode="auto")],
        versions=versions(),
        host=host_facts(),
    )


@pytest.fixture
def lines(case):
    events = [
        {"event": "prepared", "device": "npu", "mode": "emulated"},
        {"event": "collected", "ids": IDS},
        *(
            event
            for id_ in IDS
            for event in (
                {"event": "start", "id": id_},
                {"event": "outcome", **msgspec.to_builtins(case("pass", id_, message="naïve"))},
            )
        ),
        {"event": "finished", "stubbed": []},
    ]
    return b"".join(msgspec.json.encode(event) + b"\n" for event in events)


@pytest.fixture
def folder(tmp_path, manifest):
    write_manifest(tmp_path, manifest)
    (tmp_path / "cells" / "00-reference-ascend").mkdir(parents=True)
    return tmp_path


def write_events(folder, data):
    (folder / "cells" / "00-reference-ascend" / "events.jsonl").write_bytes(data)


def test_manifest_survives_the_disk(folder, manifest):
    assert read_bundle(folder).manifest == manifest


def test_closed_manifest_says_how_it_ended(folder, manifest):
    close_manifest(folder, manifest, "complete", 1)
    closed = read_bundle(folder).manifest
    assert (closed.status, closed.exit_code) == ("complete", 1)
    assert closed.ended is not None


def test_whole_cell(folder, lines):
    write_events(folder, lines)
    (cell,) = read_bundle(folder).cells
    assert cell.finished
    assert [case.id for case in cell.cases] == IDS
    assert cell.unanswered == ()


def test_cell_that_never_started(folder):
    (cell,) = read_bundle(folder).cells
    assert (cell.events, cell.cases, cell.finished) == ((), (), False)


def test_a_kill_at_any_byte_leaves_a_bundle(folder, lines):
    for size in range(len(lines)):
        write_events(folder, lines[:size])
        (cell,) = read_bundle(folder).cells
        assert len(cell.events) == lines[:size].count(b"\n")


def test_case_without_an_outcome_is_unanswered(folder, lines):
    write_events(folder, b"".join(lines.splitlines(keepends=True)[:5]))
    (cell,) = read_bundle(folder).cells
    assert cell.unanswered == (IDS[1],)


@pytest.mark.parametrize("line", [b"{not json}\n", b"[]\n", b'{"id": "x"}\n'])
def test_broken_line_is_named(folder, lines, line):
    write_events(folder, lines.splitlines(keepends=True)[0] + line)
    with pytest.raises(InfrastructureError, match=r"events.jsonl' line 2: "):
        read_bundle(folder)


def test_outcome_that_does_not_exist_is_refused(folder, lines):
    write_events(folder, lines.replace(b'"pass"', b'"passed"'))
    with pytest.raises(InfrastructureError, match="outcome of 'kv/backup"):
        read_bundle(folder)


def test_folder_that_is_no_bundle(tmp_path):
    with pytest.raises(InfrastructureError, match="no bundle"):
        read_bundle(tmp_path)


@pytest.mark.parametrize("data", ["", "{}", '{"schema": 1}', '{"schema": "x"}'])
def test_broken_manifest(tmp_path, data):
    (tmp_path / FILE).write_text(data)
    with pytest.raises(InfrastructureError, match="broken bundle"):
        read_bundle(tmp_path)


def test_manifest_of_another_schema(tmp_path):
    (tmp_path / FILE).write_text('{"schema": 2, "unknown": []}')
    with pytest.raises(InfrastructureError, match="has schema 2; expected 1"):
        read_bundle(tmp_path)


def test_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    target = tmp_path / "file"
    target.write_text("old")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        replace_file(target, b"new")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]
