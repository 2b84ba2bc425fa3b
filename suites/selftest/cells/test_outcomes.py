"""Every way in which a case can end, in one cell: each costs that case only."""

import pytest

from harness.cells import run_cells


@pytest.fixture(scope="module")
def ran(request_for, tmp_path_factory):
    """The cell's result, its events and its folder."""
    events, out = [], tmp_path_factory.mktemp("out")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATIENT", str(out))
        [result] = run_cells([request_for()], jobs=1, out=out, on_event=lambda _, event: events.append(event))
    return result, events, out


@pytest.fixture(scope="module")
def cases(ran):
    return {case.id.removeprefix("patient/"): case for case in ran[0].cases}


@pytest.mark.parametrize(
    ("case", "outcome", "message", "location"),
    [
        ("passes", "pass", "", ""),
        ("measures_nothing", "measured-nothing", "compared no byte", ""),
        ("differs", "fail", "host slot 17 holds device slot 33", ""),
        ("our_bug", "error", "KeyError: 'ours'", ""),
        ("refused", "unsupported", "no such layout", ""),
        ("skips", "error", "suites never skip", ""),
        ("cannot_ask", "error", "NoDriver: no driver for this pool API", ""),
        ("stub_behind_sut_error", "error", "StubCalled: einops was called", "sglang/code.py:16"),
        ("sut_raises", "fail", "AttributeError: 'object' object has no attribute 'data_ptrs'", "sglang/code.py:5"),
        ("sut_asserts", "fail", "assert pages == len(host) (pages = 3, host = [1, 2])", "sglang/code.py:9"),
        ("sut_exits_at_import", "fail", "SystemExit: 4", "sglang/exits.py:1"),
        ("sut_interrupts", "fail", "KeyboardInterrupt", "sglang/code.py:19"),
        ("sut_starts_threads", "pass", "", ""),
        ("sut_prints", "pass", "", ""),
        ("sut_closes_files", "pass", "", ""),
        ("prints_after_closed_files", "pass", "", ""),
        ("null_pointer", "crash", "died of SIGSEGV (signal 11) in this case", "sglang/code.py:22"),
        ("killed", "crash", "died of SIGSEGV (signal 11) in this case", ""),
        ("leaves_the_interpreter", "crash", "ended itself with exit code 3 in this case", ""),
        ("hangs", "timeout", "did not end within 4 s", "sglang/code.py:26"),
        ("deadlocks_in_c", "timeout", "did not end within 4 s", ""),
        ("takes_all_memory", "fail", "RuntimeError: ", "sglang/code.py:30"),
        ("teardown_fails", "fail", "left something behind", ""),
        ("leaves_a_daemon", "pass", "", ""),
        ("dies_each_time[4]", "crash", "ended itself with exit code 9 in this case", ""),
        ("dies_each_time[5]", "error", "not run: 5 cases of patient/dies_each_time in a row", ""),
        ("dies_each_time[7]", "error", "not run: 5 cases of patient/dies_each_time in a row", ""),
        ("backup[ascend-bf16]", "pass", "", ""),
        ("fresh_value", "pass", "", ""),
        ("fresh_sut_fails", "fail", "AttributeError: 'object' object has no attribute 'data_ptrs'", "sglang/code.py:5"),
        ("fresh_sut_exits", "fail", "SystemExit: 4", "sglang/exits.py:1"),
        ("fresh_crashes", "crash", "the fresh process died of SIGSEGV (signal 11)", "sglang/code.py:22"),
        ("fresh_hangs", "timeout", "did not end within 3 s", "sglang/code.py:26"),
        ("fresh_never_saw_the_sut", "pass", "", ""),
        ("last", "pass", "", ""),
    ],
)
def test_outcome(cases, case, outcome, message, location):
    found = cases[case]
    assert (found.outcome, found.location) == (outcome, location), found.message
    assert message in found.message


def test_every_collected_case_has_one_outcome(ran):
    _, events, _ = ran
    collected = next(event["ids"] for event in events if event["event"] == "collected")
    outcomes = [event["id"] for event in events if event["event"] == "outcome"]
    assert sorted(outcomes) == sorted(collected)


def test_finished_is_the_last_event_and_comes_once(ran):
    kinds = [event["event"] for event in ran[1]]
    assert (kinds[-1], kinds.count("finished")) == ("finished", 1)


def test_cases_stand_in_the_order_of_the_suite(ran):
    result, events, _ = ran
    collected = next(event["ids"] for event in events if event["event"] == "collected")
    assert [case.id for case in result.cases] == collected


def test_late_case_says_how_long_it_took(cases):
    assert 4 <= cases["hangs"].seconds < 10


def test_megabytes_of_output_are_cut_in_the_log(ran):
    log = next(ran[2].glob("cells/*/output.log"))
    assert log.stat().st_size < 3 << 20
    assert b"poolparity left out" in log.read_bytes()


def test_what_a_cell_leaves_behind_is_killed(ran, processes_with):
    assert processes_with(str(ran[2])) == []


def test_the_cell_says_what_it_was(ran):
    result = ran[0]
    assert (result.sut, result.platform, result.mode, result.device) == ("patient", "cpu", "emulated", "cpu")
    assert 50 < result.peak_rss_mb < 2000
