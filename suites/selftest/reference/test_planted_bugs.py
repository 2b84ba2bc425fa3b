"""Each bug of planted.toml, planted in a copy of the reference: the tests of this folder must fail."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import reference

HERE, SOURCE = Path(__file__).parent, Path(reference.__file__).parent
BUGS = tomllib.loads((HERE / "planted.toml").read_text())["bug"]


def planted(bug):
    """Return the source with the bug in it; the text to replace must be there exactly once."""
    text = (SOURCE / bug["file"]).read_text()
    assert text.count(bug["old"]) == 1, f"{bug['name']}: {bug['old']!r} is {text.count(bug['old'])} times in the file"
    return text.replace(bug["old"], bug["new"])


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug["name"])
def test_a_bug_still_has_its_place(bug):
    compile(planted(bug), bug["file"], "exec")


def test_there_are_enough_bugs():
    assert len({bug["name"] for bug in BUGS}) == len(BUGS) >= 40


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug["name"])
def test_the_tests_notice_a_planted_bug(bug, tmp_path):
    shutil.copytree(SOURCE, tmp_path / "reference", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "reference" / bug["file"]).write_text(planted(bug))
    command = [sys.executable, "-P", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", HERE, f"--ignore={__file__}"]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{SOURCE.parent}"}
    ran = subprocess.run(command, env=environment, cwd=SOURCE.parent, capture_output=True, text=True, check=False)
    assert ran.returncode == 1, f"the tests did not notice {bug['name']}:\n{ran.stdout[-2000:]}"
    assert " failed" in ran.stdout
