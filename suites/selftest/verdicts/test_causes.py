"""From an exception to an outcome, a message and a line of the SUT."""

import importlib
import sys

import pytest

from harness.errors import NoDriver, OutOfRegion, StubCalled, Unsupported
from harness.verdicts.causes import Cause, Judged, cause_of
from harness.verdicts.outcomes import Outcome
from reference.geometry import PoolGeometry

CODE = """
def call(function):
    return function()

def raises(error):
    raise error

def wraps(function):
    try:
        function()
    except Exception as error:
        raise ImportError("cannot import\\n  name 'x'") from error

def hides(function):
    try:
        function()
    except Exception:
        raise ValueError("other") from None

def bare(pages, pool):
    assert (
        pages * 2
        == pool.size
    )
"""


class Pool:
    size = 7


@pytest.fixture
def tree(tmp_path, monkeypatch):
    (tmp_path / "sglang").mkdir()
    (tmp_path / "sglang" / "patient_code.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path / "sglang")
    monkeypatch.delitem(sys.modules, "patient_code", raising=False)
    return tmp_path


@pytest.fixture
def sut(tree):
    return importlib.import_module("patient_code")


@pytest.fixture
def judged(tree):
    """Judge what a function raises."""

    def judge(function, *arguments):
        try:
            function(*arguments)
        except BaseException as error:  # noqa: BLE001 - SystemExit too
            return cause_of(error, tree)
        pytest.fail("nothing was raised")

    return judge


def fail(error):
    raise error


def test_exception_of_the_sut_is_a_failure_with_its_line(judged, sut):
    cause = judged(sut.raises, AttributeError("no data_ptrs"))
    assert cause == (Outcome.FAIL, "AttributeError: no data_ptrs", "sglang/patient_code.py:6")


def test_exception_below_the_sut_names_the_line_that_called(judged, sut):
    cause = judged(sut.call, lambda: fail(RuntimeError("in torch")))
    assert cause == (Outcome.FAIL, "RuntimeError: in torch", "sglang/patient_code.py:3")


def test_text_of_the_sut_is_one_line(judged, sut):
    cause = judged(sut.wraps, lambda: fail(KeyError("k")))
    assert cause.message == "ImportError: cannot import name 'x'"


def test_own_check_stands_as_it_was_written(judged):
    assert judged(fail, AssertionError("slot 17\n  holds 33")) == (Outcome.FAIL, "slot 17\n  holds 33", "")


def test_own_bug_is_an_error(judged):
    assert judged(fail, KeyError("ours")) == (Outcome.ERROR, "KeyError: 'ours'", "")


def test_refusal_of_a_double_is_a_failure_wherever_it_is_called(judged):
    assert judged(fail, OutOfRegion("slot 300")).outcome is Outcome.FAIL


def test_system_exit_of_the_sut_is_a_failure(judged, sut):
    assert judged(sut.raises, SystemExit(4))[:2] == (Outcome.FAIL, "SystemExit: 4")


@pytest.mark.parametrize("through", ["call", "wraps", "hides"])
def test_question_that_was_not_asked_is_an_error_whatever_the_sut_makes_of_it(judged, sut, through):
    cause = judged(getattr(sut, through), lambda: fail(StubCalled("einops was called")))
    assert cause[:2] == (Outcome.ERROR, "StubCalled: einops was called")


def test_question_in_a_group_is_found(judged):
    assert judged(fail, ExceptionGroup("several", [ValueError("a"), NoDriver("b")])).outcome is Outcome.ERROR


def test_unsupported_keeps_its_text(judged):
    assert judged(fail, Unsupported("no such layout")) == (Outcome.UNSUPPORTED, "no such layout", "")


def test_notes_follow_the_message(judged):
    error = ValueError("x")
    error.add_note("this is an accident")
    assert judged(fail, error).message == "ValueError: x\nthis is an accident"


def test_bare_assert_shows_its_statement_and_values(judged, sut):
    cause = judged(sut.bare, 3, Pool())
    assert cause.message == "assert pages * 2 == pool.size (pages = 3, pool.size = 7)"
    assert cause.location == "sglang/patient_code.py:22"


def test_bare_exception_shows_its_statement(judged, sut):
    cause = judged(sut.raises, NotImplementedError())
    assert cause.message == "NotImplementedError: raise error (error = NotImplementedError())"


def test_syntax_error_names_the_line_that_cannot_be_compiled(judged, tree):
    (tree / "sglang" / "no_python_at_all.py").write_text("x = 1\ny = (\n")
    cause = judged(importlib.import_module, "no_python_at_all")
    assert (cause.outcome, cause.location) == (Outcome.FAIL, "sglang/no_python_at_all.py:2")


def test_neighbours_of_an_installed_sut_are_not_the_sut(judged, tree, monkeypatch):
    (tree / "neighbour_of_sglang.py").write_text("def f():\n    raise RuntimeError('x')\n")
    monkeypatch.syspath_prepend(tree)
    assert judged(importlib.import_module("neighbour_of_sglang").f) == (Outcome.ERROR, "RuntimeError: x", "")


def test_failure_that_was_judged_elsewhere_stays_as_it_is(judged):
    known = Cause(Outcome.CRASH, "died", "sglang/a.py:1")
    assert judged(fail, Judged(known)) is known


def test_the_reference_has_lines_too():
    with pytest.raises((TypeError, ValueError)) as caught:
        PoolGeometry(layers=0, kv_lora_rank=1, qk_rope_head_dim=1, page_size=0, device_tokens=0)
    assert cause_of(caught.value, None).location.startswith("reference/")
