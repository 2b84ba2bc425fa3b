"""From an exception to an outcome, a message and the line of the SUT (DESIGN.md, "Words"; rules below).

First match wins:
1. The failure was judged in another process already (`RemoteFailure`): as it was judged there.
2. `CannotAsk`, or any exception that came of one: `error`. The question never reached the SUT.
3. `Unsupported`: `unsupported`.
4. `AssertionError`, `KernelRefused`, an exception type of the SUT's own, or a traceback that passes through the SUT: `fail`.
5. Anything else is our own trouble: `error`.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.cells.asserts import explain_assert
from harness.cells.location import sut_location
from harness.errors import CannotAsk, KernelRefused, Unsupported
from harness.verdicts.outcomes import Outcome


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a case did not pass. `location` is `sglang/…/file.py:line`, the deepest line of the SUT, or empty."""

    outcome: Outcome
    message: str
    location: str = ""


class RemoteFailure(Exception):
    """A failure that happened in, and was judged by, another process. `kind` is the exception's type there, or empty."""

    def __init__(self, failure: Failure, *, kind: str = "", chain: tuple[str, ...] = ()) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.kind = kind
        self.chain = chain


def judge(error: BaseException, root: Path | None) -> Failure:
    """Judge what a case raised; `root` is the SUT's (None: the reference)."""
    if isinstance(error, RemoteFailure):
        return error.failure
    chain = list(causes(error))
    location = next(filter(None, (_deepest(link, root) for link in chain)), "") or str(getattr(error, "location", ""))
    asked = next((link for link in chain if isinstance(link, CannotAsk)), None)
    if asked is not None:
        return Failure(Outcome.ERROR, describe(asked, root), location)
    if isinstance(error, Unsupported):
        return Failure(Outcome.UNSUPPORTED, _with_notes(str(error), error), location)
    outcome = Outcome.FAIL if location or _blames_sut(error) else Outcome.ERROR
    return Failure(outcome, describe(error, root), location)


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and everything it came of: causes, contexts (also suppressed ones) and members of groups."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        link = waiting.pop(0)
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        waiting += [link.__cause__, link.__context__]
        if isinstance(link, BaseExceptionGroup):
            waiting += link.exceptions


def describe(error: BaseException, root: Path | None) -> str:
    """Return one crisp line, `Type: text`, and the exception's notes below it.

    The text of one of our own checks (an AssertionError raised outside the SUT) stands alone and keeps its lines. An
    `assert` without a text gets its source and the values of the names in it.
    """
    text = str(error).strip()
    if isinstance(error, AssertionError):
        if not text:
            text = explain_assert(error)
        elif not _deepest(error, root):
            return _with_notes(text, error)
    line = " ".join(text.split())
    name = type(error).__name__
    return _with_notes(f"{name}: {line}" if line else name, error)


def frames(error: BaseException) -> Iterator[tuple[str, int]]:
    """Yield (file, line) of an exception's traceback, outermost first."""
    for frame, line in traceback.walk_tb(error.__traceback__):
        yield frame.f_code.co_filename, line


def _with_notes(text: str, error: BaseException) -> str:
    return "\n".join([text, *getattr(error, "__notes__", ())])


def _deepest(error: BaseException, root: Path | None) -> str:
    places = [sut_location(path, line, root) for path, line in frames(error)]
    if isinstance(error, SyntaxError) and error.filename:
        places.append(sut_location(error.filename, error.lineno or 0, root))
    return next(filter(None, reversed(places)), "")


def _blames_sut(error: BaseException) -> bool:
    return isinstance(error, (AssertionError, KernelRefused)) or type(error).__module__.partition(".")[0] == "sglang"
