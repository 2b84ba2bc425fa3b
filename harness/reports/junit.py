"""A gate as JUnit XML: one suite a platform; what a second run contradicted is a `flakyFailure`, as in Surefire."""

from __future__ import annotations

import io
from typing import TypeVar

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite
from junitparser.junitparser import Result
from junitparser.xunit2 import FlakyFailure
from junitparser.xunit2 import TestCase as FlakyCase

from harness.reports.gated import Gated
from harness.reports.plain import plain
from harness.verdicts.gate import CaseVerdict, Verdict

R = TypeVar("R", bound=Result)


def rendered(gated: Gated) -> str:
    """Return the document: a regression is a failure, what could not be decided an error, known red is skipped."""
    document = JUnitXml("poolparity gate")
    for platform in gated.platforms:
        suite = TestSuite(f"{platform}: {gated.base.name} -> {gated.head.name}")
        suite.add_testcases([_case(case) for case in gated.cases if case.platform == platform])
        document.add_testsuite(suite)
    document.update_statistics()  # type: ignore[no-untyped-call]  # junitparser leaves it bare
    stream = io.BytesIO()
    document.write(stream)
    return stream.getvalue().decode()


def _case(case: CaseVerdict) -> TestCase:
    test = FlakyCase(case.id, f"poolparity.{case.platform}")
    text = plain(f"{case.location}: {case.message}" if case.location else case.message)
    kind = f"{case.verdict}: base {case.base}, head {case.head}"
    if case.verdict is Verdict.INCONCLUSIVE and case.again:
        test.add_interim_result(_filled(FlakyFailure(kind, str(case.verdict)), text))
    elif case.breaks:
        test.result = [_filled(Failure(kind, str(case.verdict)), text)]
    elif case.verdict in (Verdict.INCONCLUSIVE, Verdict.MEASURED_NOTHING, Verdict.GONE_CASE):
        test.result = [_filled(Error(kind, str(case.verdict)), text)]
    elif case.verdict in (Verdict.REGRESSION, Verdict.STILL_FAILING):
        test.result = [Skipped(f"{kind}: {text}")]
    return test


def _filled(result: R, text: str) -> R:
    result.text = "".join(char for char in text if char in "\n\t" or char.isprintable())
    return result
