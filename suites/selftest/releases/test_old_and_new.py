"""The fast suites on every platform, for one old and one new release: what CI runs of the main job."""

import re

import pytest

from harness import cells, platforms, sut
from harness.verdicts.exit_code import CLEAN, exit_code, is_red

pytestmark = pytest.mark.network

OLD, NEW = "sglang==0.5.17", "sglang==0.5.23"

# What later releases fixed stays red on the old one: (platform or None for all, case, message).
KNOWN_OF_OLD = (
    # 0.5.21 is the first release that imports transfer kernels on XPU.
    ("xpu", r"kv/(backup|load|round_trip)", r"^NameError: name 'transfer_kv_"),
    # Up to 0.5.22 the factor was applied only where the weights are renormalised (layers/moe/topk.py).
    (None, r"moe/routing", r"weights without the factor|the shared column weighs"),
)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    trees = [sut.resolve(name) for name in (OLD, NEW)]
    requests = [
        cells.CellRequest(sut=tree, platform=platform, mode="emulated")
        for tree in trees
        for platform in platforms.NAMES
    ]
    out = tmp_path_factory.mktemp("bundle")
    found = cells.run_cells(requests, jobs=2, out=out, on_event=lambda _cell, _event: None)
    return {(cell.sut, cell.platform): cell for cell in found}


@pytest.mark.parametrize("platform", platforms.NAMES)
def test_the_new_release_is_clean(results, platform):
    cell = results[NEW, platform]
    wrong = [(case.id, case.outcome, case.message) for case in cell.cases if is_red(case) or case.outcome == "error"]
    assert (exit_code([cell]), wrong) == (CLEAN, [])


@pytest.mark.parametrize("platform", platforms.NAMES)
def test_the_old_release_shows_what_was_fixed_since_and_nothing_else(results, platform):
    red = [case for case in results[OLD, platform].cases if is_red(case) or case.outcome == "error"]
    known = [entry for entry in KNOWN_OF_OLD if entry[0] in (None, platform)]
    unknown = [
        (case.id, case.outcome, case.message)
        for case in red
        if not any(re.match(i, case.id) and re.search(text, case.message) for _, i, text in known)
    ]
    assert unknown == []
    assert all(any(re.match(entry[1], case.id) for case in red) for entry in known)


@pytest.mark.parametrize("platform", ["cuda", "rocm", "ascend"])
@pytest.mark.parametrize("release", [OLD, NEW])
def test_every_pass_compared_bytes(results, release, platform):
    passed = [case for case in results[release, platform].cases if case.outcome == "pass"]
    assert len(passed) > 300
    assert [case.id for case in passed if case.bytes_compared == 0] == []
