"""The pytest plugin of a cell's child: hands the prepared cell to the plugin, and streams events."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from harness.cells.context import Cell
from harness.cells.events import EventWriter, file_behind
from harness.cells.request import CellRequest
from harness.cells.touching import touching
from harness.data import suites_dir
from harness.plugin import CELL, SUITES, case_of, result_of
from harness.verdicts.outcomes import Outcome

_GREEN = (Outcome.PASS, Outcome.UNSUPPORTED)


class Stream:
    """Selects the cases that have no outcome yet, and writes an event when one starts and when it ends."""

    def __init__(self, cell: Cell, request: CellRequest, done: frozenset[str], writer: EventWriter, log: Path) -> None:
        self.cell = cell
        self.request = request
        self.done = done
        self.writer = writer
        self.log = log
        self.touched: tuple[str, ...] = ()

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
        """Show a file that cannot be collected as a case of its own: its cases are missing otherwise, unnoticed."""
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
        mend_output(self.log)
        self.writer.write({"event": "start", "id": case_of(item)})
        self.touched = ()
        answer = yield
        result = result_of(item)
        if self.request.traced:
            self.writer.write({"event": "touched", "id": result.id, "files": self.touched})
        self.writer.write({"event": "outcome", **msgspec.to_builtins(result)})
        if self.request.stop_at_red and result.outcome not in _GREEN:
            item.session.shouldfail = f"{result.id}: {result.outcome}"
        return answer

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self) -> Generator[None]:
        """Keep pytest from stopping (see `no_interrupt`), and watch what runs."""
        with no_interrupt(), self._watching():
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None]:
        """Keep pytest from stopping (see `no_interrupt`), and watch what runs."""
        with no_interrupt(), self._watching():
            return (yield)

    @contextmanager
    def _watching(self) -> Generator[None]:
        """Note the files of the SUT that run in a phase; those of the test itself outweigh those of its setup."""
        if not self.request.traced:
            yield
            return
        with touching(self.cell.sut.root) as touched:
            try:
                yield
            finally:
                self.touched = tuple(sorted(touched)) or self.touched


class InterruptedCaseError(RuntimeError):
    """A case raised KeyboardInterrupt."""


@contextmanager
def no_interrupt() -> Generator[None]:
    """Nobody presses Ctrl-C in a cell: a KeyboardInterrupt is the SUT's, and one case's."""
    try:
        yield
    except KeyboardInterrupt as error:
        msg = "the case raised KeyboardInterrupt"
        raise InterruptedCaseError(msg).with_traceback(error.__traceback__) from error


def mend_output(log: Path) -> None:
    """Open standard output and error again where a SUT closed them, so that the next case can print."""
    for fd in (1, 2):
        if file_behind(fd) is None:
            number = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            if number != fd:
                os.dup2(number, fd)
                os.close(number)


def _first_line(item: pytest.Item) -> str:
    doc = getattr(getattr(item, "function", None), "__doc__", None) or ""
    return doc.strip().partition("\n")[0]
