"""The record of one case while it runs: what was measured, what went wrong, what was expected."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from harness.checks.meter import Meter
from harness.verdicts.causes import Cause, cause_of
from harness.verdicts.expectations import Expectation, find
from harness.verdicts.outcomes import CaseResult, Outcome


class Record:
    """One case. `cause` is why it is not a pass; None while nothing speaks against it."""

    def __init__(self, case: str) -> None:
        self.case = case
        self.meter = Meter()
        self.seconds = 0.0
        self.cause: Cause | None = None
        self.expectation: Expectation | None = None
        self.stale: Expectation | None = None
        self._judged = False
        self._shown: Cause | None = None

    def raised(self, error: BaseException, sut_root: Path | None) -> None:
        """Take in an exception; the first one is the cause, unless it was a refusal and this one is worse."""
        if isinstance(error, pytest.skip.Exception):
            cause = Cause(Outcome.ERROR, f"the suite skipped a case: {error}; suites must answer or refuse", "")
        else:
            cause = cause_of(error, sut_root)
        if self.cause is None or self.cause.outcome is Outcome.UNSUPPORTED:
            self.cause = cause

    def returned(self) -> None:
        """Take in that the test function came to its end."""
        if self.meter.bytes == 0:
            self.cause = Cause(Outcome.MEASURED_NOTHING, "the case ran and compared no byte", "")

    def expect(self, entries: Iterable[Expectation], **cell: Any) -> None:
        """Hold the outcome against the expectations that speak of this case, once."""
        if self._judged:
            return
        self._judged = True
        for entry in find(entries, self.case, **cell):
            if entry.expired():
                text = f"the expectation {entry.id} expired on {entry.expires}: renew or drop it ({entry.reference})"
                self.cause = Cause(Outcome.ERROR, text, "")
            elif self.cause is not None and self.cause.outcome is Outcome.FAIL and entry.matches(self.cause.message):
                self.expectation = entry
            elif entry.sut and cell.get("version") is None:
                continue  # a tree whose version nobody knows may be one that the entry is not about
            elif self.cause is None or self.cause.outcome is Outcome.UNSUPPORTED:
                text = f"expected to fail ({entry.id}), and did not: remove the expectation, or bound it by version"
                self.cause, self.stale = Cause(Outcome.FAIL, text, ""), entry

    def show(self, report: pytest.TestReport) -> None:
        """Make pytest's report of the phase that decided say what the record says; other phases say nothing more."""
        if self.cause is None or self.cause is self._shown:
            return
        self._shown = self.cause
        if self.expectation is not None:
            report.outcome = "skipped"
            report.wasxfail = f"{self.expectation.id}: {self.expectation.reason}"
        elif self.cause.outcome is Outcome.UNSUPPORTED:
            report.outcome = "skipped"
            report.longrepr = (str(report.fspath), report.location[1] or 0, f"unsupported: {self.cause.message}")
        elif report.outcome != "failed" and report.when != "setup":
            report.outcome = "failed"
            report.longrepr = self._summary(self.cause)
        elif crash := getattr(report.longrepr, "reprcrash", None):
            crash.message = self._summary(self.cause)  # what pytest's last lines show of a failure

    @staticmethod
    def _summary(cause: Cause) -> str:
        place = f" ({cause.location})" if cause.location else ""
        return f"{cause.outcome}: {cause.message}{place}"

    def result(self) -> CaseResult:
        """The case as reports and bundles have it."""
        return CaseResult(
            id=self.case,
            suite=self.case.partition("/")[0],
            outcome=self.cause.outcome if self.cause else Outcome.PASS,
            message=self.cause.message if self.cause else "",
            location=self.cause.location if self.cause else "",
            bytes_compared=self.meter.bytes,
            seconds=round(self.seconds, 6),
            expectation=self.expectation.id if self.expectation else None,
            stale=self.stale.id if self.stale else UNSET,
        )
