"""Where a function of the SUT returned, for results that are wrong without any exception."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

from harness.checks.moe_imports import in_package


class Line(NamedTuple):
    """A line of the SUT: `place` is `sglang/…/file.py:line`, `text` the statement there."""

    place: str
    text: str

    def __str__(self) -> str:
        return f"{self.place}: `{self.text}`" if self.place else "an unknown line"


class WrongResult(AssertionError):  # noqa: N818 - a failed check, not a defect of the harness
    """A result that is wrong although nothing was raised. `location` is the line of the SUT that returned it."""

    def __init__(self, message: str, location: str) -> None:
        super().__init__(message)
        self.location = location


def returning_line(call: Callable[[], object], function: str) -> Line:
    """Run a call once more and return the line at which `function` returned, which is where to start reading.

    Empty when no function of that name ran. What the call raises after that is of no interest here.
    """
    seen = [Line("", "")]

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        if frame.f_code.co_name != function:
            return None
        if event == "return":
            path, number = frame.f_code.co_filename, frame.f_lineno
            seen.append(Line(f"{in_package(path)}:{number}", linecache.getline(path, number).strip()))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except AssertionError:
        return seen[-1]
    finally:
        sys.settrace(before)
    return seen[-1]
