"""What can come of a case, and the records that reports, bundles and gates share."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Outcome(StrEnum):
    """What came of one case (docs/contract.md, "Words")."""

    PASS = "pass"  # noqa: S105 - an outcome, not a password
    FAIL = "fail"
    ERROR = "error"
    UNSUPPORTED = "unsupported"
    MEASURED_NOTHING = "measured-nothing"
    CRASH = "crash"
    TIMEOUT = "timeout"


class CaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """One case in one cell. `location` is `sglang/…/file.py:line` or empty; `expectation` an id or None.

    `stale` is the id of an expectation that the case, which did not fail, makes a failure ("remove this");
    unset otherwise, and then absent from JSON.
    """

    id: str
    suite: str
    outcome: Outcome
    message: str = ""
    location: str = ""
    bytes_compared: int = 0
    seconds: float = 0.0
    expectation: str | None = None
    stale: str | msgspec.UnsetType = msgspec.UNSET


class CellResult(msgspec.Struct, kw_only=True):
    """One SUT on one platform. `seconds` is wall time; `peak_rss_mb` MiB of the largest process of the cell."""

    sut: str
    platform: str
    mode: str
    device: str
    seconds: float
    peak_rss_mb: float
    stubbed: list[str]
    cases: list[CaseResult]
