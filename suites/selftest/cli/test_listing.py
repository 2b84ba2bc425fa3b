"""`poolparity list` around the cells, which are faked here."""

import json

import pytest
from click.testing import CliRunner

from harness.cli import main
from harness.sut.spec import SutTree

CHECKS = ["Backup moves every named row.", "Load moves every named row."]


@pytest.fixture
def events():
    """What each fake cell reports."""
    ids = ["kv/backup[ascend-bf16]", "kv/load[ascend-bf16]"]
    return [
        {"event": "prepared", "mode": "emulated", "device": "npu"},
        {"event": "collected", "ids": ids, "checks": CHECKS},
        {"event": "finished", "stubbed": []},
    ]


@pytest.fixture(autouse=True)
def fakes(monkeypatch, events, cell, case):
    def run_cells(requests, *, out, on_event, **_):
        assert out.is_dir()
        results = []
        for number, request in enumerate(requests):
            assert request.collect_only
            for event in events:
                on_event(number, event)
            trouble = [case("error", event["id"]) for event in events if event["event"] == "outcome"]
            results.append(cell(sut=request.sut.name, platform=request.platform, cases=trouble))
        return results

    resolve = lambda name, **_: SutTree(name=name, root=None, version=None, identity=name)  # noqa: E731
    monkeypatch.setattr("harness.sut.resolve", resolve, raising=False)
    monkeypatch.setattr("harness.cells.run_cells", run_cells)


def list_cases(*arguments):
    return CliRunner().invoke(main, ["list", "--sut", "x", "--platform", "ascend", *arguments])


def test_cases_and_what_they_check():
    result = list_cases()
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "x ascend emulated: 2 cases",
        "  Backup moves every named row.",
        "    kv/backup[ascend-bf16]",
        "  Load moves every named row.",
        "    kv/load[ascend-bf16]",
    ]


def test_json():
    answer = json.loads(list_cases("--json", "-").stdout)
    (cell,) = answer.pop("cells")
    assert answer == {"schema": 1, "command": "list", "exit_code": 0}
    assert (cell["sut"], cell["platform"], cell["mode"]) == ("x", "ascend", "emulated")
    assert cell["cases"][0] == {"id": "kv/backup[ascend-bf16]", "suite": "kv", "checks": CHECKS[0]}


def test_empty_selection_is_4(events):
    events[1:2] = [{"event": "collected", "ids": [], "checks": []}]
    assert list_cases().exit_code == 4


def test_suite_that_cannot_be_collected_is_3_and_named(events):
    events.append({"event": "outcome", "id": "collect[kv/test_load.py]", "outcome": "error"})
    result = list_cases()
    assert result.exit_code == 3
    assert "collect[kv/test_load.py]" in result.stderr


def test_listing_leaves_no_bundle(state_dir):
    list_cases()
    assert list(state_dir.iterdir()) == []


def test_wrong_name_is_2():
    assert list_cases("--suite", "kvv").exit_code == 2
