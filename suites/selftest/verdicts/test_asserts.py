"""What is said of an exception without a text."""

import pytest
import torch

from harness.verdicts.asserts import explain, show


class Thing:
    __slots__ = ("slot",)

    def __init__(self):
        self.slot = 5

    @property
    def costly(self):
        pytest.fail("a property of the SUT was run again")


def explained(function):
    with pytest.raises(AssertionError) as caught:
        function()
    return explain(caught.value)


def run(source, **names):
    """Run source that has no file: nothing can be looked up."""
    exec(compile(source, "no_such_file.py", "exec"), names)  # noqa: S102


def test_source_without_a_file_gets_its_place():
    assert explained(lambda: run("assert False")) == "without a text, at no_such_file.py:1"


def test_property_is_not_run_again(tmp_path):
    path = tmp_path / "code.py"
    path.write_text("assert not thing.slot and thing.costly\n")
    with pytest.raises(AssertionError) as caught:
        exec(compile(path.read_text(), str(path), "exec"), {"thing": Thing()})  # noqa: S102
    assert explain(caught.value) == "assert not thing.slot and thing.costly (thing.slot = 5)"


def test_tensor_is_shown_by_its_shape():
    assert show(torch.zeros(3, 4)) == "Tensor((3, 4), torch.float32, cpu)"


def test_long_value_is_cut():
    assert len(show("x" * 1000)) < 100
