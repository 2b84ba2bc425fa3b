"""Building the device, with a compiler that is a shell script: it counts its runs and does as it is told."""

import stat
import threading

import pytest

from harness.emulation import npu_device
from harness.emulation.npu_device import building


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """Install a compiler that runs `body`; returns the function that counts its runs."""

    def install(body):
        script, runs = tmp_path / "fake-c++", tmp_path / "runs"
        script.write_text(f"#!/bin/sh\necho run >> {runs}\n{body}\n")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("CXX", str(script))
        return lambda: len(runs.read_text().splitlines()) if runs.exists() else 0

    return install


WRITES_ITS_OUTPUT = 'while [ "$1" != -o ]; do shift; done; echo library > "$2"'


def test_built_once_and_found_again(tmp_path, compiler):
    runs = compiler(WRITES_ITS_OUTPUT)
    assert not npu_device.available_without_building(tmp_path / "cache")
    library = npu_device.build_or_reason(tmp_path / "cache")
    assert library == npu_device.build_or_reason(tmp_path / "cache")
    assert library.read_text() == "library\n"
    assert npu_device.available_without_building(tmp_path / "cache")
    assert runs() == 1


def test_built_once_by_many_at_a_time(tmp_path, compiler):
    runs = compiler("sleep 0.2;" + WRITES_ITS_OUTPUT)
    found = []
    threads = [threading.Thread(target=lambda: found.append(npu_device.build_or_reason(tmp_path))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(set(found)), runs()) == (1, 1)


def test_another_compiler_is_another_build(tmp_path, compiler):
    compiler(WRITES_ITS_OUTPUT)
    first = npu_device.build_or_reason(tmp_path)
    compiler(WRITES_ITS_OUTPUT + " # newer")
    assert not npu_device.available_without_building(tmp_path)
    assert npu_device.build_or_reason(tmp_path) != first


def test_failure_is_told_and_not_repeated(tmp_path, compiler):
    runs = compiler('echo "x.cpp:1: error: no such header" >&2; exit 1')
    assert "x.cpp:1: error: no such header" in npu_device.build_or_reason(tmp_path)
    assert "failed before" in npu_device.build_or_reason(tmp_path)
    assert runs() == 1
    assert not list(tmp_path.rglob("*.so"))


def test_failure_without_a_message(tmp_path, compiler):
    compiler("exit 3")
    assert "exit code 3 and no message" in npu_device.build_or_reason(tmp_path)


def test_no_compiler(tmp_path, monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no C++ compiler found" in npu_device.build_or_reason(tmp_path)
    assert not npu_device.available_without_building(tmp_path)


def test_torch_without_headers(tmp_path, monkeypatch):
    monkeypatch.setattr(building, "_torch_folder", lambda: tmp_path)
    assert "has no C++ headers" in npu_device.build_or_reason(tmp_path)


def test_cache_that_cannot_be_written(tmp_path, compiler):
    compiler(WRITES_ITS_OUTPUT)
    (tmp_path / "file").write_text("not a folder")
    assert "cannot be written" in npu_device.build_or_reason(tmp_path / "file")
