"""`poolparity run` as a process of its own, with cells that only wait: signals, streams, what the parent loads."""

import signal
import subprocess
import sys
import time

import pytest

from harness.bundles import read_bundle

PROGRAM = """
import sys, time
from harness import cells, sut
from harness.cli import main
from harness.sut.spec import SutTree

def run_cells(requests, *, jobs, out, on_event):
    (out / "started").touch()
    time.sleep({seconds})
    return []

cells.run_cells = run_cells
sut.resolve = lambda name, **_: SutTree(name=name, root=None, version=None, identity=name)
try:
    main(sys.argv[1:])
finally:
    print("LOADED", sorted({{"torch", "numpy", "pytest"}} & set(sys.modules)), file=sys.stderr)
"""


def start(seconds, *arguments):
    command = [sys.executable, "-c", PROGRAM.format(seconds=seconds), "run", "--sut", "x", "--mode", "emulated"]
    return subprocess.Popen([*command, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_a_run_with_130_and_an_interrupted_bundle(tmp_path, number):
    process = start(60, "--out", tmp_path)
    while not (tmp_path / "started").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    assert read_bundle(tmp_path).manifest.status == "running"
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert "interrupted" in err
    assert read_bundle(tmp_path).manifest.status == "interrupted"


def test_parent_loads_nothing_heavy(tmp_path):
    _, err = start(0, "--out", tmp_path).communicate(timeout=60)
    assert "LOADED []" in err
