"""`poolparity run` around the cells: what it checks first, what it writes, what it exits with. Cells are faked here."""

import json

import msgspec
import pytest
from click.testing import CliRunner

from harness import platforms
from harness.bundles import place, read_bundle
from harness.cells import folder_name
from harness.cli import main
from harness.errors import InfrastructureError, UsageError
from harness.sut.spec import SutTree

NO_DEVICE = platforms.Detection(present=False, reason="no such device")


@pytest.fixture
def asked():
    """Every request that reached the fake cells."""
    return []


@pytest.fixture
def outcomes():
    """The outcome of each case of each fake cell."""
    return ["pass"]


@pytest.fixture(autouse=True)
def fakes(monkeypatch, cell, asked, outcomes):
    def resolve(name, **_):
        if name == "sglang==9.9.9":
            msg = "no release 9.9.9"
            raise UsageError(msg)
        return SutTree(name=name, root=None, version=None, identity=name)

    def run_cells(requests, *, out, on_event, **_):
        results = [cell(*outcomes, sut=request.sut.name, platform=request.platform) for request in requests]
        for number, (request, result) in enumerate(zip(requests, results, strict=True)):
            asked.append(request)
            folder = out / "cells" / folder_name(number, request)
            folder.mkdir(parents=True)
            events = [{"event": "outcome", **msgspec.to_builtins(case)} for case in result.cases]
            (folder / "events.jsonl").write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in events))
            for event in events:
                on_event(number, event)
        return results

    monkeypatch.setattr("harness.sut.resolve", resolve, raising=False)
    monkeypatch.setattr("harness.sut.default_sut", lambda: "sglang==0.5.23", raising=False)
    monkeypatch.setattr("harness.cells.run_cells", run_cells)
    monkeypatch.setattr(platforms.Platform, "detect_native", lambda _: NO_DEVICE)


def run(*arguments):
    return CliRunner().invoke(main, ["run", *map(str, arguments)])


def test_every_sut_meets_every_platform(asked):
    assert run("--sut", "a", "--sut", "b", "--platform", "cuda", "--platform", "xpu").exit_code == 0
    pairs = [(request.sut.name, request.platform) for request in asked]
    assert pairs == [("a", "cuda"), ("a", "xpu"), ("b", "cuda"), ("b", "xpu")]


def test_defaults(asked):
    run()
    assert [request.platform for request in asked] == ["cuda", "rocm", "ascend"]
    assert (asked[0].sut.name, asked[0].mode, asked[0].suites) == ("sglang==0.5.23", "auto", ("kv", "moe", "platform"))


def test_what_was_asked_reaches_the_cells(asked):
    run("--suite", "moe", "-k", "bf16 and not p1", "--seed", 7, "--case-timeout", 2.5, "--mode", "emulated")
    (request, *_) = asked
    assert (request.suites, request.keyword, request.mode) == (("moe",), "bf16 and not p1", "emulated")
    assert (request.seed, request.case_timeout_s) == (7, 2.5)


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [(["pass"], 0), (["pass", "fail"], 1), (["pass", "error"], 3), (["unsupported"], 4), (["measured-nothing"], 4)],
)
def test_exit_code_is_the_same_everywhere(tmp_path, outcomes, code):
    assert outcomes  # read by the fake cells
    result = run("--json", tmp_path / "out.json", "--out", tmp_path / "bundle")
    assert result.exit_code == code
    assert json.loads((tmp_path / "out.json").read_text())["exit_code"] == code
    assert read_bundle(tmp_path / "bundle").manifest.exit_code == code


@pytest.mark.parametrize("outcomes", [[], ["unsupported", "unsupported"]])
def test_measured_nothing_is_said(outcomes):
    assert f"measured nothing: {len(outcomes)} cases" in run("--sut", "a", "--platform", "cuda").stderr


def test_json_has_the_contract_and_nothing_beside_it():
    result = run("--sut", "a", "--platform", "ascend", "--json", "-")
    answer = json.loads(result.stdout)
    assert set(answer) == {"schema", "command", "exit_code", "cells"}
    (cell,) = answer["cells"]
    assert set(cell) == {"sut", "platform", "mode", "device", "seconds", "peak_rss_mb", "stubbed", "cases"}
    (case,) = cell["cases"]
    fields = {"id", "suite", "outcome", "message", "location", "bytes_compared", "seconds", "expectation"}
    assert set(case) == fields


def test_table_goes_to_stdout_and_the_rest_to_stderr():
    result = run("--sut", "a", "--platform", "ascend")
    assert "P 1" in result.stdout
    assert "bundle: " not in result.stdout
    assert "bundle: " in result.stderr


def test_bundle_tells_the_run(tmp_path):
    run("--sut", "a", "--platform", "ascend", "--out", tmp_path, "--seed", 7)
    bundle = read_bundle(tmp_path)
    assert (bundle.manifest.status, bundle.manifest.seed, bundle.manifest.suts[0].identity) == ("complete", 7, "a")
    assert [case.outcome for case in bundle.cells[0].cases] == ["pass"]


def test_bundle_without_a_place_goes_to_the_state_folder():
    run()
    (folder,) = place.runs_dir().iterdir()
    assert read_bundle(folder).manifest.status == "complete"


def test_old_bundles_of_ours_are_pruned(monkeypatch):
    monkeypatch.setattr(place.prune, "__kwdefaults__", {"keep": 2})
    names = iter(["20261201T120000Z-aaaaaa", "20261201T120001Z-aaaaaa", "20261201T120002Z-aaaaaa"])
    monkeypatch.setattr(place, "fresh_name", lambda: next(names))
    assert [run().exit_code for _ in range(3)] == [0, 0, 0]
    assert min(path.name for path in place.runs_dir().iterdir()) == "20261201T120001Z-aaaaaa"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--platform", "rocmm"], 2, "did you mean rocm?"),
        (["--suite", "kvv"], 2, "did you mean kv?"),
        (["--mode", "both"], 2, "'both' is not one of"),
        (["-k", "a and"], 2, "is no selection"),
        (["--jobs", "0"], 2, "--jobs"),
        (["--case-timeout", "0"], 2, "--case-timeout"),
        (["--json", "/nowhere/out.json"], 2, "there is no folder"),
        (["--out", "/proc/nowhere"], 2, "/proc/nowhere"),
        (["--sut", "sglang==9.9.9"], 2, "no release 9.9.9"),
        (["--mode", "native", "--platform", "xpu"], 3, "xpu is not on this machine (no such device)"),
    ],
)
def test_bad_input_is_one_message_and_leaves_nothing(arguments, code, message, asked):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert not asked
    assert not place.runs_dir().exists()


def test_out_that_holds_something_is_left_alone(tmp_path):
    (tmp_path / "mine").write_text("x")
    assert run("--out", tmp_path).exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt(), 130), (InfrastructureError("no server"), 3), (OSError(28, "No space"), 3)]
)
def test_run_that_is_cut_leaves_an_interrupted_bundle(monkeypatch, tmp_path, error, code):
    def run_cells(*_, **__):
        raise error

    monkeypatch.setattr("harness.cells.run_cells", run_cells)
    result = run("--out", tmp_path / "bundle", "--json", tmp_path / "out.json")
    assert result.exit_code == code
    assert read_bundle(tmp_path / "bundle").manifest.status == "interrupted"
    assert not (tmp_path / "out.json").exists()
