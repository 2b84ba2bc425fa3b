"""Bundles: the folder that a run leaves behind, enough to judge, compare, report or repeat it.

    manifest.json            what was run; written when the run starts, replaced when it ends
    cells/<cell>/events.jsonl   what happened, line by line, written by the cell (harness.cells)

A run that is killed at any moment leaves a bundle that `read_bundle` reads up to that moment.
"""

from harness.bundles.read import Bundle, CellLog, read_bundle

__all__ = ["Bundle", "CellLog", "read_bundle"]
