"""From an exception to an outcome: whose fault it is, where in the SUT, and in what words."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from harness.errors import CannotAsk, InfrastructureError, KernelRefused, Unsupported
from harness.verdicts.asserts import explain
from harness.verdicts.location import sut_location
from harness.verdicts.outcomes import Outcome

_MESSAGE_LIMIT = 4000


class Cause(NamedTuple):
    """Why a case did not pass. `location` is `sglang/…/file.py:line`, the SUT's deepest frame, or empty."""

    outcome: Outcome
    message: str
    location: str


class Judged(Exception):  # noqa: N818 - not an error of its own, but one that was judged where it happened
    """A failure in another process, with its cause."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(cause.message)
        self.cause = cause


def cause_of(error: BaseException, sut_root: Path | None) -> Cause:
    """Judge an exception that ended a case; `sut_root` is the SUT's (None: the reference).

    What the harness could not ask is `error`; a clear refusal is `unsupported`; a failed check, a kernel double's
    refusal, or anything raised while the SUT's code was running, is `fail`; anything else is our own bug and `error`.
    """
    if isinstance(error, Judged):
        return error.cause
    chain = list(causes(error))
    location = next(filter(None, (_deepest(link, sut_root) for link in chain)), "") or getattr(error, "location", "")
    unasked = next((link for link in chain if isinstance(link, CannotAsk | InfrastructureError)), None)
    if unasked is not None:
        return Cause(Outcome.ERROR, _message(unasked, sut_root), location)
    if isinstance(error, Unsupported):
        return Cause(Outcome.UNSUPPORTED, _message(error, sut_root), location)
    blames_sut = isinstance(error, AssertionError | KernelRefused) or bool(location)
    return Cause(Outcome.FAIL if blames_sut else Outcome.ERROR, _message(error, sut_root), location)


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and all that it came of: causes, contexts (hidden ones too), members of groups."""
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


def _deepest(error: BaseException, root: Path | None) -> str:
    """Return the innermost line of the SUT in a traceback; of a SyntaxError the line that cannot be compiled."""
    steps = traceback.walk_tb(error.__traceback__)
    places = [sut_location(frame.f_code.co_filename, line, root) for frame, line in steps]
    if isinstance(error, SyntaxError) and error.filename:
        places.append(sut_location(error.filename, error.lineno or 0, root))
    return next(filter(None, reversed(places)), "")


def _message(error: BaseException, root: Path | None) -> str:
    """Return `Type: text` in one line, with the exception's notes below; a check of ours stands as it was written."""
    text, name = str(error).strip(), type(error).__name__
    if type(error) is Unsupported or (isinstance(error, AssertionError) and text and not _deepest(error, root)):
        head = text
    else:
        line = " ".join((text or explain(error)).split())
        head = line if isinstance(error, AssertionError) and not text else f"{name}: {line}"
    notes = [str(note) for note in getattr(error, "__notes__", ())]
    return "\n".join([head, *notes])[:_MESSAGE_LIMIT]
