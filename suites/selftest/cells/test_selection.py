"""What a cell runs, and what becomes of a cell that cannot run anything."""

import msgspec
import pytest

from harness.cells import folder_name, run_cells

PLATFORM_SUITE = "import platform\n\n\ndef test_machine(meter):\n    meter.compared(len(platform.machine()))\n"
GOOD = "def test_good(meter):\n    meter.compared(1)\n"


@pytest.fixture(scope="module")
def other_suites(tmp_path_factory):
    """A suite with a file that cannot be imported, and one that is called like a module of the standard library."""
    root = tmp_path_factory.mktemp("other") / "suites"
    files = {"half/test_broken.py": "import no_such_module\n", "half/test_good.py": GOOD}
    for name, text in {**files, "platform/test_machine.py": PLATFORM_SUITE}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture(scope="module")
def ran(request_for, other_suites, tmp_path_factory):
    """Several cells of one run: their results and events by name."""
    asked = {
        "keyword": {"keyword": "passes or last"},
        "id_as_keyword": {"keyword": "patient/backup[ascend-bf16]"},
        "ids": {"ids": ("patient/last", "patient/backup[ascend-fp8]")},
        "collect": {"collect_only": True},
        "empty": {"keyword": "no_such_case"},
        "tpu": {"platform": "tpu"},
        "half": {"suites_root": other_suites, "suites": ("half",)},
        "platform": {"suites_root": other_suites, "suites": ("platform",)},
        "late": {"keyword": "hangs or last", "case_timeout_s": 60.0, "cell_timeout_s": 3.0},
    }
    events = [[] for _ in asked]
    requests = [request_for(**fields) for fields in asked.values()]
    out = tmp_path_factory.mktemp("out")
    results = run_cells(requests, jobs=2, out=out, on_event=lambda number, event: events[number].append(event))
    return {name: both for name, *both in zip(asked, results, events, strict=True)}


def outcomes(result):
    return {case.id: case.outcome for case in result.cases}


def test_keyword_selects(ran):
    assert outcomes(ran["keyword"][0]) == {"patient/passes": "pass", "patient/last": "pass"}


def test_case_id_is_a_keyword(ran):
    assert outcomes(ran["id_as_keyword"][0]) == {"patient/backup[ascend-bf16]": "pass"}


def test_ids_select(ran):
    assert outcomes(ran["ids"][0]) == {"patient/backup[ascend-fp8]": "pass", "patient/last": "pass"}


def test_collect_only_runs_nothing_and_says_what_each_case_checks(ran):
    result, events = ran["collect"]
    collected = next(event for event in events if event["event"] == "collected")
    assert result.cases == []
    assert dict(zip(collected["ids"], collected["checks"], strict=True))["patient/passes"] == "The first line."


def test_empty_selection_is_no_error(ran):
    result, events = ran["empty"]
    assert (result.cases, events[-1]["event"]) == ([], "finished")


def test_unknown_platform_is_one_error_of_the_cell(ran):
    [case] = ran["tpu"][0].cases
    assert case.outcome == "error"
    assert "unknown platform 'tpu'" in case.message


def test_file_that_cannot_be_imported_is_an_error_and_the_rest_runs(ran):
    assert outcomes(ran["half"][0]) == {"half/good": "pass", "half/collect[test_broken.py]": "error"}


def test_suite_named_like_a_module_of_python_hides_nothing(ran):
    assert outcomes(ran["platform"][0]) == {"platform/machine": "pass"}


def test_cell_whose_time_is_over_answers_for_every_case(ran):
    late = {case.id: case for case in ran["late"][0].cases}
    assert late["patient/hangs"].outcome == "timeout"
    assert late["patient/last"].outcome == "error"
    assert "the cell had its 3 s" in late["patient/last"].message


@pytest.mark.parametrize("name", ["tpu", "late", "collect", "half"])
def test_every_cell_ends_with_finished(ran, name):
    assert [event["event"] for event in ran[name][1]].index("finished") == len(ran[name][1]) - 1


def test_folder_name_is_safe(request_for):
    request = request_for()
    request = msgspec.structs.replace(request, sut=msgspec.structs.replace(request.sut, name="../a b@v0.5.19"))
    assert folder_name(3, request) == "03-a-b-v0.5.19-cpu"
