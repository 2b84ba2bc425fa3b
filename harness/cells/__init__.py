"""Cells: one SUT on one platform, in a process of its own that may crash, hang or exit without harm to the others.

The processes of a run, each the parent of the next:

    coordinator   the command itself; knows no torch, reads events, keeps time (pool.py, track.py)
    server        one a run; has torch loaded, forks a child for each cell, reaps it and its orphans (server.py)
    child         the cell: limits, emulation, pytest (child.py, stream.py); a new one takes over where one died
    zygote        forked before the SUT is imported, for cases that want a fresh process (fresh.py)

When the coordinator dies, the server sees its input close and ends everything below it.
"""

from __future__ import annotations

from harness.cells.pool import OnEvent, run_cells
from harness.cells.request import CellRequest, folder_name

__all__ = ["CellRequest", "OnEvent", "folder_name", "run_cells"]
