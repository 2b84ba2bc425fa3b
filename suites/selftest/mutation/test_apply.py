import pytest

from harness.sut.mutation import Mutant, NotApplicableError, write_mutant

MUTANT = Mutant("return-other", "sglang/fusion.py", "fuse", 0)


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "tree" / "sglang").mkdir(parents=True)
    (tmp_path / "tree" / "sglang" / "fusion.py").write_text("def fuse(routed, shared):\n    return routed\n")
    (tmp_path / "tree" / "sglang" / "other.py").write_text("x = 1\n")
    return tmp_path / "tree"


def test_a_mutant_is_a_copy_with_one_edit(tree, tmp_path):
    copy = write_mutant(tree, tmp_path / "mutant", MUTANT)
    assert "return shared" in (copy / "sglang" / "fusion.py").read_text()
    assert (copy / "sglang" / "other.py").read_text() == "x = 1\n"


def test_the_original_stays_as_it_was(tree, tmp_path):
    write_mutant(tree, tmp_path / "mutant", MUTANT)
    assert "return routed" in (tree / "sglang" / "fusion.py").read_text()


@pytest.mark.parametrize("file", ["sglang/other.py", "sglang/gone.py"])
def test_a_mutant_that_finds_nothing_is_an_error_and_leaves_nothing(tree, tmp_path, file):
    with pytest.raises(NotApplicableError, match="refresh the mutant or drop it"):
        write_mutant(tree, tmp_path / "mutant", Mutant("return-other", file, "fuse", 0))
    assert not (tmp_path / "mutant").exists()
