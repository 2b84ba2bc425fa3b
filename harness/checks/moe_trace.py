"""Where a function of the SUT returned, for results that are wrong without any exception."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from harness.checks.moe_imports import in_package


class Returned(Exception):  # noqa: N818 - not an error: it marks a line, and its traceback leads there
    """A function of the SUT returned here."""


def returning_line(call: Callable[[], object], function: str) -> Returned | None:
    """Run a call once more and mark the line at which `function` returned, which is where to start reading.

    The mark is an exception whose deepest frame is that line; it is raised by the tracing function, which Python then
    lets fall through the traced frame. None when no function of that name ran.
    """

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        if frame.f_code.co_name != function:
            return None
        if event == "return":
            path, number = frame.f_code.co_filename, frame.f_lineno
            text = f"{in_package(path)}:{number}: `{linecache.getline(path, number).strip()}`"
            raise Returned(text)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except Returned as mark:
        return mark
    finally:
        sys.settrace(before)
    return None
