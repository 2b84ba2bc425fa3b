"""What counts as a clear refusal: a deliberate error that names what it refuses."""

from __future__ import annotations

from collections.abc import Callable

from harness.errors import CannotAsk, Unsupported

DELIBERATE = (ValueError, NotImplementedError)


def attempt(action: Callable[[], object]) -> Exception | None:
    """Run something that must be refused; return the exception, or None when it was accepted.

    An error of the harness itself (`CannotAsk`) is no refusal and passes through.
    """
    try:
        action()
    except CannotAsk:
        raise
    except Exception as error:  # noqa: BLE001 - whatever the SUT raises is the answer that is judged
        return error
    return None


def judge(what: str, error: Exception | None, names: tuple[str, ...]) -> str:
    """Return the text of a clear refusal.

    Raises AssertionError when nothing was refused, and the SUT's own error when it is an accident (an attribute that
    is not there, a name that was never bound) or does not name any of `names`.
    """
    if error is None:
        msg = f"{what} was accepted; expected a ValueError that names {' or '.join(names)}"
        raise AssertionError(msg)
    if isinstance(error, Unsupported):
        raise error
    if not isinstance(error, DELIBERATE) or not any(name in str(error) for name in names):
        error.add_note(f"{what}: an accident, no refusal; expected a ValueError that names layout or io backend")
        raise error
    return str(error)


def refused(what: str, reasons: list[str]) -> None:
    """End the case as `unsupported`: everything that was tried was refused, and clearly."""
    msg = f"{what} is refused: {'; '.join(dict.fromkeys(reasons))}"
    raise Unsupported(msg)
