"""The plugin in pytest runs of all kinds: in those that are not about us it must not be noticed."""

import os
import re
import subprocess
import sys

import pytest

from harness.data import suites_dir


@pytest.fixture
def pytest_run(tmp_path):
    """Run pytest in an empty folder with our plugin, as an installed poolparity would add it."""

    def start(*arguments, cwd=tmp_path):
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "harness.plugin",
            "-p",
            "no:cacheprovider",
            *map(str, arguments),
        ]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }
        return subprocess.run(
            command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False
        )

    return start


def test_project_with_options_of_the_same_names_is_left_alone(pytest_run, tmp_path):
    options = "def pytest_addoption(parser):\n    parser.addoption('--platform')\n    parser.addoption('--mode')\n"
    (tmp_path / "conftest.py").write_text(options)
    (tmp_path / "test_theirs.py").write_text(
        "import sys\n\n\ndef test_it(pytestconfig):\n"
        "    assert pytestconfig.getoption('--platform') == 'mine'\n"
        "    assert not {'torch', 'harness.cells', 'msgspec'} & set(sys.modules)\n"
    )
    ran = pytest_run("--platform", "mine")
    assert "1 passed" in ran.stdout, ran.stdout + ran.stderr


def test_more_than_one_platform_needs_a_run(pytest_run):
    ran = pytest_run(suites_dir() / "kv", "--sut", "reference", "--platform", "cuda", "--platform", "rocm")
    assert "expected one: a pytest process is one cell; use `poolparity run`" in ran.stdout + ran.stderr
    assert ran.returncode not in (0, 1, 5)


def test_unknown_platform_lists_the_known_ones(pytest_run):
    ran = pytest_run(suites_dir() / "kv", "--sut", "reference", "--platform", "tpu")
    assert "unknown platform 'tpu'; expected one of cuda, rocm, ascend, xpu, cpu" in ran.stdout + ran.stderr


def test_suites_run_in_plain_pytest_and_a_refusal_is_skipped_with_its_reason(pytest_run):
    ran = pytest_run(suites_dir() / "kv", "--sut", "reference", "--platform", "cuda", "-rs", "-k", "no_such_layout")
    assert re.search(r"= 4 skipped, \d+ deselected", ran.stdout), ran.stdout + ran.stderr
    assert "unsupported: " in ran.stdout


def test_own_tests_keep_their_ids(pytest_run):
    own = suites_dir() / "selftest" / "verdicts" / "test_expectations.py"
    ran = pytest_run(own, "--collect-only", "-q")
    assert "test_expectations.py::test_message_is_searched" in ran.stdout
