"""The pytest plugin of a cell's child: hands the prepared cell to the plugin, and streams events."""

from __future__ import annotations

from collections.abc import Generator

import msgspec
import pytest

from harness.cells.context import Cell
from harness.cells.events import EventWriter
from harness.cells.request import CellRequest
from harness.data import suites_dir
from harness.plugin import CELL, SUITES, case_of, result_of


class Stream:
    """Selects the cases that have no outcome yet, and writes an event when one starts and when it ends."""

    def __init__(self, cell: Cell, request: CellRequest, done: frozenset[str], writer: EventWriter) -> None:
        self.cell = cell
        self.request = request
        self.done = done
        self.writer = writer

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Make this cell the one that the suites see."""
        config.stash[CELL] = self.cell
        config.stash[SUITES] = self.request.suites_root or suites_dir()
        # Nobody reads pytest's own rendering of a failure here, and it costs more than most cases.
        config.option.tbstyle = "line"

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Report what was collected; keep what is asked for and not done."""
        wanted = self.request.ids
        chosen = [item for item in items if wanted is None or case_of(item) in wanted]
        self.writer.write(
            {
                "event": "collected",
                "ids": [case_of(item) for item in chosen],
                "checks": [_first_line(item) for item in chosen] if self.request.collect_only else [],
            }
        )
        items[:] = [item for item in chosen if case_of(item) not in self.done]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Show a suite that cannot be collected as a case of its own: its cases are missing, and nobody else would say."""
        if report.failed:
            _, suite, *inside = [*report.nodeid.split("/"), "", ""]
            self.writer.write(
                {
                    "event": "outcome",
                    "id": f"{suite}/collect[{'/'.join(filter(None, inside))}]",
                    "suite": suite,
                    "outcome": "error",
                    "message": report.longreprtext[-2000:],
                }
            )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Write the events of one case."""
        self.writer.write({"event": "start", "id": case_of(item)})
        answer = yield
        self.writer.write({"event": "outcome", **msgspec.to_builtins(result_of(item))})
        return answer


def _first_line(item: pytest.Item) -> str:
    doc = getattr(getattr(item, "function", None), "__doc__", None) or ""
    return doc.strip().partition("\n")[0]
