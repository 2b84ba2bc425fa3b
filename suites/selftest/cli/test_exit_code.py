import pytest

from harness.verdicts.exit_code import exit_code


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([], 4),
        (["unsupported"], 4),
        (["measured-nothing", "unsupported"], 4),
        (["pass"], 0),
        (["pass", "unsupported"], 0),
        (["pass", "fail"], 1),
        (["pass", "crash"], 1),
        (["pass", "timeout"], 1),
        (["pass", "measured-nothing"], 1),
        (["fail", "error"], 1),
        (["pass", "error"], 3),
        (["error"], 3),
        (["error", "unsupported"], 3),
        (["error", "measured-nothing"], 1),
    ],
)
def test_code_of_one_cell(cell, outcomes, code):
    assert exit_code([cell(*outcomes)]) == code


def test_no_cell_measured_nothing():
    assert exit_code([]) == 4


@pytest.mark.parametrize("outcome", ["fail", "crash", "timeout"])
def test_expected_failure_is_clean(cell, case, outcome):
    assert exit_code([cell(cases=[case(outcome, expectation="E1"), case("pass")])]) == 0


def test_only_expected_failures_are_an_answer_too(cell, case):
    assert exit_code([cell(cases=[case("fail", expectation="E1")])]) == 0


def test_an_expectation_does_not_cover_its_neighbour(cell, case):
    assert exit_code([cell(cases=[case("fail", expectation="E1"), case("fail")])]) == 1


def test_an_expectation_does_not_cover_an_error(cell, case):
    assert exit_code([cell(cases=[case("error", expectation="E1"), case("pass")])]) == 3


def test_one_cell_that_measured_is_enough(cell):
    assert exit_code([cell("unsupported"), cell("pass")]) == 0


def test_a_red_cell_is_not_hidden_by_a_green_one(cell):
    assert exit_code([cell("pass"), cell("fail"), cell("pass")]) == 1
