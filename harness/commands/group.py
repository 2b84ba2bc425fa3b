"""How a command ends when it does not end well: one message on standard error, and the right exit code."""

from __future__ import annotations

import sys
import traceback
from typing import Any

import click

from harness.errors import PoolparityError

INFRASTRUCTURE = 3
INTERRUPTED = 130


class Group(click.Group):
    """A click group that turns what its commands raise into messages and exit codes (never 1, which means red)."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; its return value is the exit code."""
        try:
            ctx.exit(super().invoke(ctx) or 0)
        except PoolparityError as error:
            _say(str(error))
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            _say("interrupted")
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            raise  # click knows: the reader of our standard output went away
        except OSError as error:
            _say(f"{error}; expected the system to allow it; check space, permissions and limits")
            ctx.exit(INFRASTRUCTURE)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception:  # noqa: BLE001 - shown in full, and never mistaken for a red case (exit code 1)
            traceback.print_exc(file=sys.stderr)
            _say("this is a bug in poolparity, not in the SUT; please report it with the lines above")
            ctx.exit(INFRASTRUCTURE)


def _say(message: str) -> None:
    click.echo(f"poolparity: {_safe(message)}", err=True)


def _safe(message: str) -> str:
    return "".join(char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in message)
