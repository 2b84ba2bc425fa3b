import shutil
from pathlib import Path

import psutil
import pytest

from harness.cells import CellRequest
from harness.sut.spec import SutTree

CODE = """
import ctypes, time

def attribute():
    return object().data_ptrs

def bare(pages, host):
    assert (
        pages == len(host)
    )

def hides(stub):
    try:
        stub()
    except Exception:
        raise ImportError("something else") from None

def interrupt():
    raise KeyboardInterrupt

def null_pointer():
    ctypes.string_at(0)

def hang():
    while True:
        time.sleep(0.01)

def hoard():
    import torch
    return [torch.empty(1 << 26) for _ in range(64)]
"""


@pytest.fixture(scope="session")
def tree(tmp_path_factory):
    """A tree that passes for SGLang as long as nobody asks it for a pool."""
    package = tmp_path_factory.mktemp("tree") / "sglang"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "code.py").write_text(CODE)
    (package / "exits.py").write_text("raise SystemExit(4)\n")
    return SutTree(name="patient", root=package.parent, version=None, identity="patient")


@pytest.fixture(scope="session")
def suites(tmp_path_factory):
    """A suites folder with the suite `patient`."""
    root = tmp_path_factory.mktemp("clone") / "suites"
    (root / "patient").mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("patient.py"), root / "patient" / "test_patient.py")
    return root


@pytest.fixture(scope="session")
def request_for(tree, suites):
    """Build a request for the patient; fields can be replaced."""

    def build(**fields):
        known = {"sut": tree, "platform": "cpu", "mode": "emulated", "suites": ("patient",), "suites_root": suites}
        return CellRequest(**{**known, "case_timeout_s": 4.0, "memory_mb": 2048, **fields})

    return build


@pytest.fixture
def processes_with():
    """Find the processes whose command line holds a text."""

    def find(text):
        everything = psutil.process_iter(["cmdline"])
        return [process for process in everything if any(text in part for part in process.info["cmdline"] or ())]

    return find
