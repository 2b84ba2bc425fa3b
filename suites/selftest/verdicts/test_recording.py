"""How the phases of a case and its expectations add up to an outcome."""

from datetime import date

import pytest

from harness.errors import Unsupported
from harness.verdicts.expectations import Expectation
from harness.verdicts.recording import Record

CELL = {"version": "0.5.22", "platform": "ascend", "mode": "emulated"}


def entry(**fields):
    known = {"id": "e", "case": ("kv/x",), "message": "data_ptrs", "reference": "#1", "reason": "r"}
    return Expectation(**{**known, "expires": date(2999, 1, 1), **fields})


@pytest.fixture
def record():
    return Record("kv/x")


def settle(record, *entries, **cell):
    record.expect(entries, **{**CELL, **cell})
    return record.result()


def test_comparison_makes_a_pass(record):
    record.meter.compared(7)
    record.returned()
    assert (settle(record).outcome, settle(record).bytes_compared) == ("pass", 7)


def test_nothing_compared_is_no_pass(record):
    record.returned()
    assert settle(record).outcome == "measured-nothing"


def test_first_failure_is_the_cause(record):
    record.raised(AssertionError("first"), None)
    record.raised(AssertionError("second"), None)
    assert settle(record).message == "first"


def test_failure_after_a_refusal_outranks_it(record):
    record.raised(Unsupported("refused"), None)
    record.raised(AssertionError("the teardown failed"), None)
    assert settle(record).outcome == "fail"


def test_expected_failure_stays_a_failure_with_its_expectation(record):
    record.raised(AssertionError("no data_ptrs"), None)
    result = settle(record, entry())
    assert (result.outcome, result.expectation) == ("fail", "e")


def test_other_failure_is_not_expected(record):
    record.raised(AssertionError("no k_buffer"), None)
    assert settle(record, entry()).expectation is None


def test_error_is_never_expected(record):
    record.raised(KeyError("data_ptrs"), None)
    assert settle(record, entry()).expectation is None


def test_expected_failure_that_passes_is_a_failure(record):
    record.meter.compared(1)
    record.returned()
    result = settle(record, entry())
    assert (result.outcome, result.expectation) == ("fail", None)
    assert "remove the expectation" in result.message


def test_expired_expectation_is_an_error(record):
    record.raised(AssertionError("no data_ptrs"), None)
    assert settle(record, entry(expires=date(2020, 1, 1))).outcome == "error"


def test_pass_of_a_tree_of_unknown_version_contradicts_no_bounded_entry(record):
    record.meter.compared(1)
    record.returned()
    assert settle(record, entry(sut=">=0.5.21"), version=None).outcome == "pass"


class Report:
    """As much of a pytest report as a record changes."""

    def __init__(self, when):
        self.when, self.outcome, self.longrepr = when, "passed", None


def test_phase_that_decided_is_the_only_one_that_shows_it(record):
    record.returned()
    reports = [Report("call"), Report("teardown")]
    for report in reports:
        record.show(report)
    assert [report.outcome for report in reports] == ["failed", "passed"]
