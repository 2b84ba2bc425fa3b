"""What the command line said, as plain values: checked for spelling, nothing looked up yet."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

CASE_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What to judge. Empty `suts` is the default SUT; an empty `keyword` selects every case."""

    suts: tuple[str, ...]
    platforms: tuple[str, ...]
    mode: str
    suites: tuple[str, ...]
    keyword: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How to judge it and where the answer goes. `command` is the command line, for the bundle."""

    selection: Selection
    out: Path | None
    json: str | None
    jobs: int
    seed: int
    case_timeout_s: float
    command: tuple[str, ...]
