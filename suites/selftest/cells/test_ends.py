"""However a run ends, nothing of it stays behind, and what it wrote can be read."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import psutil
import pytest

PROGRAM = """
import sys
from pathlib import Path
import msgspec
from harness.cells import CellRequest, run_cells

request = msgspec.json.decode(sys.argv[1], type=CellRequest, dec_hook=lambda kind, text: kind(text))
try:
    run_cells([request, request], jobs=2, out=Path(sys.argv[2]), on_event=lambda *_: None)
except KeyboardInterrupt:
    print("interrupted")
"""
WAIT_S = 60


@pytest.fixture
def hanging(request_for, tmp_path, processes_with):
    """A run of two cells, both inside a case that hangs after one that started a daemon; and all its processes."""
    asked = request_for(
        keyword="daemon or hangs", case_timeout_s=600.0, ids=("patient/leaves_a_daemon", "patient/hangs")
    )
    command = [sys.executable, "-c", PROGRAM, msgspec.json.encode(asked, enc_hook=str).decode(), str(tmp_path)]
    environment = {**os.environ, "PATIENT": str(tmp_path), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    wait_for(lambda: sum('"start","id":"patient/hangs"' in text for text in event_files(tmp_path)) == 2)
    everything = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    wait_for(lambda: len(processes_with(str(tmp_path))) >= 3)
    everything += [daemon for daemon in processes_with(str(tmp_path)) if daemon not in everything]
    assert len(everything) >= 8  # the command, the server, and two cells with a zygote and a daemon each
    with process:
        yield process, everything
        for one in alive([*everything, *processes_with(str(tmp_path))]):
            one.kill()


def event_files(folder):
    return [path.read_text() for path in Path(folder).glob("cells/*/events.jsonl")]


def wait_for(condition):
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def cells_of(everything):
    """The children of the server that are cells; a daemon that a case left behind is none."""
    _, server, *below = everything
    return [p for p in below if p.parent() == server and "sleep" not in " ".join(p.cmdline())]


def alive(processes):
    return [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


def test_kill_9_of_the_command_ends_everything(hanging, tmp_path, processes_with):
    process, everything = hanging
    process.send_signal(signal.SIGKILL)
    wait_for(lambda: not alive([*everything, *processes_with(str(tmp_path))]))
    assert all(text.endswith("\n") for text in event_files(tmp_path))


def test_ctrl_c_ends_everything_and_leaves_whole_lines(hanging, tmp_path, processes_with):
    process, everything = hanging
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=WAIT_S)
    assert (process.returncode, out) == (0, "interrupted\n")
    assert not alive([*everything, *processes_with(str(tmp_path))])
    assert all(msgspec.json.decode(line) for text in event_files(tmp_path) for line in text.splitlines())


def test_death_of_the_server_is_an_infrastructure_error(hanging):
    process, everything = hanging
    cells = cells_of(everything)
    everything[1].kill()
    process.communicate(timeout=WAIT_S)
    assert process.returncode == 1
    wait_for(lambda: not alive(cells))


def test_signal_from_outside_costs_the_running_case_only(hanging, tmp_path):
    for cell, number in zip(cells_of(hanging[1]), (signal.SIGSEGV, signal.SIGKILL), strict=True):
        cell.send_signal(number)
    wait_for(lambda: all('"finished"' in text for text in event_files(tmp_path)))
    texts = "".join(event_files(tmp_path))
    assert "died of SIGSEGV (signal 11) in this case" in texts
    assert "died of SIGKILL (signal 9) in this case" in texts
