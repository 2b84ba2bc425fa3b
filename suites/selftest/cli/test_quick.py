"""The command line answers at once: nothing heavy is imported before a command needs it. No clock is read here."""

import subprocess
import sys

import pytest

HEAVY = ("torch", "numpy", "pytest", "_pytest", "triton", "hypothesis", "sglang", "rich", "psutil")


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["run", "--platform", "rocmm"], ["--version"]])
def test_nothing_heavy_is_imported(arguments):
    code = (
        "import sys; from harness.cli import main\n"
        f"try: main({arguments!r})\n"
        "except SystemExit: pass\n"
        f"print('HEAVY', sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "HEAVY []"


def test_module_and_console_script_are_the_same():
    ran = subprocess.run([sys.executable, "-m", "harness", "--version"], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("poolparity, version ")


def test_help_tells_the_exit_codes():
    ran = subprocess.run([sys.executable, "-m", "harness", "--help"], capture_output=True, text=True, check=True)
    assert all(f"\n    {code} " in ran.stdout for code in (0, 1, 2, 3, 4, 130))
