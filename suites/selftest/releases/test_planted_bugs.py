"""Every bug of fixtures/mutants/planted.toml, planted in a copy of the release, is caught and named."""

import re
import tomllib

import pytest

from harness import cells, sut
from harness.data import fixtures_dir
from harness.sut.mutation import copy_tree
from harness.sut.spec import SutTree

pytestmark = pytest.mark.network

PLANTED = tomllib.loads((fixtures_dir() / "mutants" / "planted.toml").read_text())


def plant(root, target, mutant):
    """Copy the tree with the mutant's edit; raises AssertionError when it no longer applies."""
    path = root / mutant["file"]
    head, after, tail = path.read_text().partition(mutant["after"])
    assert after, f"{mutant['name']}: {mutant['after']!r} is not in {mutant['file']}"
    assert mutant["find"] in tail, f"{mutant['name']}: nothing to replace after {mutant['after']!r}"
    copy_tree(root, target)
    (target / mutant["file"]).unlink()
    (target / mutant["file"]).write_text(head + after + tail.replace(mutant["find"], mutant["replace"], 1))
    return SutTree(name=mutant["name"], root=target, version=PLANTED["sut"].partition("==")[2], identity="planted")


def run_planted(folder):
    """Run every planted bug's cases, in one go; returns {name: CellResult}."""
    root = sut.resolve(PLANTED["sut"]).root
    requests = [
        cells.CellRequest(
            sut=plant(root, folder / mutant["name"], mutant),
            platform=mutant["platform"],
            mode="emulated",
            suites=("kv", "moe"),
            keyword=mutant["keyword"],
        )
        for mutant in PLANTED["mutant"]
    ]
    results = cells.run_cells(requests, jobs=2, out=folder / "bundle", on_event=lambda _cell, _event: None)
    return {result.sut: result for result in results}


def caught(mutant, result):
    """Return the failing cases whose message names the culprit."""
    failed = [case for case in result.cases if case.outcome == "fail"]
    return [case for case in failed if re.search(mutant["message"], case.message)]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return run_planted(tmp_path_factory.mktemp("planted"))


@pytest.mark.parametrize("mutant", PLANTED["mutant"], ids=lambda mutant: mutant["name"])
def test_a_planted_bug_is_caught_with_a_message_that_names_it(mutant, results):
    cases = results[mutant["name"]].cases
    assert cases, "the keyword selects no case"
    assert caught(mutant, results[mutant["name"]]), [(c.id, c.outcome, c.message) for c in cases]
