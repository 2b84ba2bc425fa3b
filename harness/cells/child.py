"""A cell's child process: prepares the cell, runs pytest over the suites, and streams what happens."""

from __future__ import annotations

import os
import sys

import pytest

from harness import data
from harness.cells.context import Cell
from harness.cells.events import FILE, EventWriter
from harness.cells.limits import die_with_parent, limit_memory
from harness.cells.log import LOG_FILE
from harness.cells.request import CellRequest, Start
from harness.cells.stream import Stream
from harness.emulation import bytecode_folder

# A fresh process must be late before the case that waits for it is.
_FRESH_SHARE = 0.75
_PYTEST_OK = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)


def run_child(command: Start, parent: int) -> int:
    """Run a cell and return the exit code of the process: 0 when pytest came to its end."""
    die_with_parent(parent)
    limit_memory(command.request.memory_mb)
    # Nothing is written into the SUT's tree; without a cache of its bytecode a cell would compile SGLang for 20 s.
    sys.pycache_prefix, sys.dont_write_bytecode = str(bytecode_folder()), False
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    writer = EventWriter(command.folder / FILE)
    request = command.request
    limit = request.case_timeout_s * _FRESH_SHARE
    cell = Cell(request.sut, request.platform, request.mode, request.seed, fresh_limit_s=limit)
    cell.prepare()
    writer.write({"event": "prepared", "device": cell.device, "mode": cell.mode})
    stream = Stream(cell, request, frozenset(command.done), writer, command.folder / LOG_FILE)
    code = pytest.main(_arguments(request), plugins=[stream])
    if code not in _PYTEST_OK:
        sys.stderr.write(f"pytest ended with {code!r}\n")
        return 71
    writer.write({"event": "finished", "stubbed": cell.stubbed()})
    return 0


def _arguments(request: CellRequest) -> list[str]:
    suites = request.suites_root or data.suites_dir()
    paths = [str(suites / name) for name in request.suites if (suites / name).is_dir()]
    off = (
        "terminal",
        "cacheprovider",
        "stepwise",
        "junitxml",
        "doctest",
        "pastebin",
        "unraisableexception",
        "faulthandler",
    )
    plugins = ["-p", "harness.plugin", *(part for name in off for part in ("-p", f"no:{name}"))]
    quiet = [
        "--continue-on-collection-errors",
        "--import-mode=importlib",
        "--assert=plain",
        "--capture=no",
        "-c",
        os.devnull,
    ]
    select = ["-k", request.keyword] if request.keyword else []
    collect = ["--collect-only"] if request.collect_only else []
    # pytest names modules by their path from the root: from `suites` itself, the folder `platform` would become a
    # module of that name and hide the standard library's.
    return [*plugins, *quiet, f"--rootdir={suites.parent}", *select, *collect, *paths]
