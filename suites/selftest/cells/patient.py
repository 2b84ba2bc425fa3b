"""A suite for cells to run: each case ends in its own way. `conftest.py` copies it to where a cell finds it."""

import ctypes
import importlib
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from harness.errors import NoDriver, StubCalled, Unsupported

MEGABYTE = "x" * (1 << 20)


def sut(module):
    return importlib.import_module(f"sglang.{module}")


def test_passes(meter):
    """The first line.

    Not the second.
    """
    meter.compared(3)


def test_measures_nothing():
    pass


def test_differs(meter):
    meter.compared(2)
    msg = "host slot 17 holds device slot 33"
    raise AssertionError(msg)


def test_our_bug():
    {}["ours"]


def test_refused():
    msg = "no such layout"
    raise Unsupported(msg)


def test_skips():
    pytest.skip("suites never skip")


def test_cannot_ask():
    msg = "no driver for this pool API"
    raise NoDriver(msg)


def test_stub_behind_sut_error():
    def stub():
        msg = "einops was called"
        raise StubCalled(msg)

    sut("code").hides(stub)


def test_sut_raises():
    sut("code").attribute()


def test_sut_asserts():
    sut("code").bare(3, [1, 2])


def test_sut_exits_at_import():
    sut("exits")


def test_sut_interrupts():
    sut("code").interrupt()


def test_sut_starts_threads(meter):
    for _ in range(8):
        threading.Thread(target=time.sleep, args=(3600,)).start()
    meter.compared(1)


def test_sut_prints(meter):
    for _ in range(8):
        sys.stdout.write(MEGABYTE)
        sys.stderr.write(MEGABYTE)
    meter.compared(1)


def test_null_pointer():
    sut("code").null_pointer()


def test_killed():
    os.kill(os.getpid(), signal.SIGSEGV)


def test_sut_closes_files(meter):
    os.closerange(0, 1024)
    meter.compared(1)


def test_prints_after_closed_files(meter):
    sys.stdout.write("still here")
    sys.stdout.flush()
    meter.compared(1)


def test_leaves_the_interpreter():
    os._exit(3)


def test_leaves_a_daemon(meter):
    command = [sys.executable, "-c", "import time; time.sleep(3600)", os.environ["PATIENT"]]
    subprocess.Popen(["setsid", *command], start_new_session=True)
    meter.compared(1)


def test_hangs():
    sut("code").hang()


def test_deadlocks_in_c():
    mutex = ctypes.create_string_buffer(64)
    for _ in range(2):
        ctypes.CDLL(None).pthread_mutex_lock(mutex)


def test_takes_all_memory():
    sut("code").hoard()


@pytest.mark.usefixtures("broken_teardown")
def test_teardown_fails(meter):
    meter.compared(1)


@pytest.fixture
def broken_teardown():
    yield
    msg = "left something behind"
    raise AssertionError(msg)


@pytest.mark.parametrize("code", [9] * 8, ids=range(8))
def test_dies_each_time(code):
    os._exit(code)


@pytest.mark.parametrize("dtype", ["bf16", "fp8"])
@pytest.mark.parametrize("platform", ["ascend"])
def test_backup(platform, dtype, meter):
    meter.compared(len(platform + dtype))


def test_fresh_value(cell, meter):
    assert cell.fresh("operator:add", 2, 3) == 5
    meter.compared(1)


def test_fresh_sut_fails(cell):
    cell.fresh("sglang.code:attribute")


def test_fresh_sut_exits(cell):
    cell.fresh("importlib:import_module", "sglang.exits")


def test_fresh_crashes(cell):
    cell.fresh("sglang.code:null_pointer")


def test_fresh_hangs(cell):
    cell.fresh("sglang.code:hang")


def test_fresh_never_saw_the_sut(cell, meter):
    sut("code")
    assert not cell.fresh("builtins:eval", "'sglang.code' in __import__('sys').modules")
    meter.compared(1)


def test_last(meter):
    meter.compared(1)
