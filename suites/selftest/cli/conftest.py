import msgspec
import pytest

from harness.verdicts.outcomes import CaseResult, CellResult


@pytest.fixture
def case():
    """Build a CaseResult from what matters to a test."""

    def build(outcome="pass", id_="kv/backup[x]", **fields):
        known = {"message": "", "location": "", "bytes_compared": 0, "seconds": 0.0, "expectation": None}
        return msgspec.convert({"id": id_, "suite": "kv", "outcome": outcome, **known, **fields}, type=CaseResult)

    return build


@pytest.fixture
def cell(case):
    """Build a CellResult of one case for each outcome given."""

    def build(*outcomes, sut="sglang==0.5.19", platform="ascend", cases=None, **fields):
        made = cases or [case(outcome, f"kv/backup[{n}]") for n, outcome in enumerate(outcomes)]
        known = {"mode": "emulated", "device": "npu", "seconds": 1.0, "peak_rss_mb": 100, "stubbed": []}
        raw = {"sut": sut, "platform": platform, "cases": [], **known, **fields}
        built = msgspec.convert(raw, type=CellResult)
        built.cases.extend(made)
        return built

    return build


@pytest.fixture(autouse=True)
def state_dir(tmp_path_factory, monkeypatch):
    """Keep the bundles of these tests away from the user's own, also in child processes."""
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder
