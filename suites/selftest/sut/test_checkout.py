import subprocess

import pytest

from harness import sut
from harness.errors import UsageError


def git(folder, *arguments):
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / "checkout"
    source = folder / "python" / "sglang" / "srt"
    source.mkdir(parents=True)
    (source / "__init__.py").write_text("x = 1\n")
    (source.parent / "version.py").write_text('__version__ = "0.5.20"\n')
    git(tmp_path, "init", "-q", "-b", "main", str(folder))
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "one")
    git(folder, "branch", "old")
    (source / "__init__.py").write_text("x = 2\n")
    git(folder, "commit", "-qam", "two")
    return folder


def test_a_checkout_is_judged_as_it_is_on_disk(checkout):
    tree = sut.resolve(str(checkout))
    assert (tree.root, tree.version) == (checkout / "python", "0.5.20")
    assert tree.identity.startswith("git ")


def test_a_dirty_checkout_has_another_identity(checkout):
    clean = sut.resolve(str(checkout)).identity
    (checkout / "python/sglang/srt/__init__.py").write_text("x = 3\n")
    assert sut.resolve(str(checkout)).identity.startswith(f"{clean}-dirty")


def test_a_ref_is_another_tree_and_leaves_the_checkout_alone(checkout, tmp_path):
    tree = sut.resolve(f"{checkout}@old", cache=tmp_path / "cache")
    assert (tree.root / "sglang/srt/__init__.py").read_text() == "x = 1\n"
    assert (checkout / "python/sglang/srt/__init__.py").read_text() == "x = 2\n"
    ran = subprocess.run(["git", "-C", str(checkout), "worktree", "list"], capture_output=True, text=True, check=True)
    assert len(ran.stdout.splitlines()) == 1


def test_a_ref_that_is_not_there_says_how_to_fetch_it(checkout, tmp_path):
    with pytest.raises(UsageError, match="fetch it first"):
        sut.resolve(f"{checkout}@pull/36747/head", cache=tmp_path / "cache")


@pytest.mark.parametrize("layout", ["sglang", "python/sglang", "lib/python3.11/site-packages/sglang"])
def test_places_where_sglang_may_be(tmp_path, layout):
    (tmp_path / layout / "srt").mkdir(parents=True)
    assert sut.resolve(str(tmp_path)).root == (tmp_path / layout).parent


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda p: p.mkdir(), "holds no SGLang"),
        (lambda p: p.write_text(""), "is a file"),
        (lambda p: None, "does not exist"),
    ],
)
def test_what_is_no_sglang_says_what_it_is(tmp_path, make, says):
    make(tmp_path / "thing")
    with pytest.raises(UsageError, match=says):
        sut.resolve(str(tmp_path / "thing"))


def test_an_empty_name_is_a_usage_error():
    with pytest.raises(UsageError, match="an empty SUT"):
        sut.resolve(" ")


def test_a_folder_without_git_is_known_by_its_content(tmp_path):
    (tmp_path / "sglang" / "srt").mkdir(parents=True)
    first = sut.resolve(str(tmp_path)).identity
    (tmp_path / "sglang" / "srt" / "x.py").write_text("x = 1\n")
    assert first.startswith("folder sha256:")
    assert sut.resolve(str(tmp_path)).identity != first


def test_the_reference_is_a_sut_like_any_other():
    tree = sut.resolve("reference")
    assert (tree.is_reference, tree.root) == (True, None)
