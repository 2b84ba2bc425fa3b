"""From an exception to an outcome: whose fault it is, where in the SUT, and in what words."""

from __future__ import annotations

import linecache
import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from harness.errors import CannotAsk, InfrastructureError, Unsupported
from harness.verdicts.outcomes import Outcome

_MESSAGE_LIMIT = 4000
_VALUE_LIMIT = 60
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")


class Cause(NamedTuple):
    """Why a case did not pass. `location` is `sglang/…/file.py:line`, the SUT's deepest frame, or empty."""

    outcome: Outcome
    message: str
    location: str


def cause_of(error: BaseException, sut_root: Path | None) -> Cause:
    """Judge an exception that ended a case.

    What the harness could not ask is `error`; a clear refusal is `unsupported`; a failed check, or anything raised
    while the SUT's code was running, is `fail`; anything else is our own bug and `error` too.
    """
    chain = list(_chain(error))
    frames = [(frame, line) for e in chain for frame, line in traceback.walk_tb(e.__traceback__)]
    sut_frames = [(f, n) for f, n in frames if _inside(f, sut_root)]
    location = _location(*sut_frames[-1], sut_root) if sut_frames else ""
    message = _message(error)
    if any(isinstance(e, CannotAsk | InfrastructureError) for e in chain):
        return Cause(Outcome.ERROR, message, location)
    if isinstance(error, Unsupported):
        return Cause(Outcome.UNSUPPORTED, message, location)
    blames_sut = isinstance(error, AssertionError) or bool(sut_frames)
    return Cause(Outcome.FAIL if blames_sut else Outcome.ERROR, message, location)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what it was raised from or during; the error itself last, so that its frames count as deepest."""
    seen: list[BaseException] = []
    at: BaseException | None = error
    while at is not None and at not in seen:
        seen.append(at)
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
    return reversed(seen)


def _inside(frame: FrameType, root: Path | None) -> bool:
    return root is not None and frame.f_code.co_filename.startswith(f"{root}/")


def _location(frame: FrameType, line: int, root: Path | None) -> str:
    return f"{Path(frame.f_code.co_filename).relative_to(root or '/')}:{line}"


def _message(error: BaseException) -> str:
    text = str(error) or _bare(error)
    head = (
        text if isinstance(error, AssertionError) or type(error) is Unsupported else f"{type(error).__name__}: {text}"
    )
    notes = [str(note) for note in getattr(error, "__notes__", ())]
    return "\n".join([head.strip(), *notes])[:_MESSAGE_LIMIT]


def _bare(error: BaseException) -> str:
    """What to say of an exception without a text: its source line and the values of the names in it."""
    frames = list(traceback.walk_tb(error.__traceback__))
    if not frames:
        return "without a text"
    frame, number = frames[-1]
    line = linecache.getline(frame.f_code.co_filename, number).strip()
    values = [
        f"{name}={value}" for name in dict.fromkeys(_NAME.findall(line)) if (value := _value(frame, name)) is not None
    ]
    return f"{line}" + (f" with {', '.join(values)}" if values else "")


def _value(frame: FrameType, dotted: str) -> str | None:
    first, *rest = dotted.split(".")
    if first not in frame.f_locals:
        return None
    value = frame.f_locals[first]
    for name in rest:
        # Only plain attributes: reading a property would run the SUT's code once more.
        value = getattr(value, "__dict__", {}).get(name)
    text = repr(value)
    return text if len(text) <= _VALUE_LIMIT else f"{text[:_VALUE_LIMIT]}…"
