import io

import msgspec
from rich.console import Console

from harness.reports.progress import Progress


def events(case, **fields):
    result = msgspec.to_builtins(case("fail", "kv/backup[a]", **fields))
    yield {"event": "prepared", "mode": "emulated", "device": "npu"}
    yield {"event": "collected", "ids": ["kv/backup[a]", "kv/backup[b]"]}
    yield {"event": "start", "id": "kv/backup[a]"}
    yield {"event": "outcome", **result}
    yield {"event": "finished", "stubbed": []}


def follow(case, **console):
    stream = io.StringIO()
    with Progress(["0.5.19 ascend"], Console(file=stream, width=120, **console)) as progress:
        for event in events(case):
            progress.on_event(0, event)
    return stream.getvalue(), progress


def test_plain_lines_without_a_terminal(case):
    text, _ = follow(case)
    assert text == "0.5.19 ascend: emulated, npu: 2 cases\n0.5.19 ascend: done: F 1\n"


def test_live_table_on_a_terminal(case):
    text, _ = follow(case, force_terminal=True)
    assert "\x1b[" in text
    assert "0.5.19 ascend: done" not in text


def test_expected_failure_is_counted_as_such(case):
    progress = Progress(["x"], Console(file=io.StringIO()))
    for event in events(case, expectation="E1"):
        progress.on_event(0, event)
    assert progress.states[0].counts == {"expected": 1}


def test_relaunched_cell_counts_each_case_once(case):
    _, progress = follow(case)
    for event in events(case):
        progress.on_event(0, event)
    assert progress.states[0].counts == {"fail": 1}
    assert len(progress.states[0].ids) == 2
