"""How commands end: exit code 1 is kept for red cases, so whatever a command raises must become another."""

import click
import pytest
from click.testing import CliRunner

from harness.commands.group import Group
from harness.errors import InfrastructureError, UsageError


def ending(action):
    group = Group("poolparity")
    group.add_command(click.Command("go", callback=action))
    return CliRunner().invoke(group, ["go"])


def raising(error):
    def action():
        raise error

    return ending(action)


@pytest.mark.parametrize("code", [0, 1, 3, 4])
def test_return_value_is_the_exit_code(code):
    assert ending(lambda: code).exit_code == code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("no such thing"), 2),
        (InfrastructureError("no such thing"), 3),
        (OSError(28, "no such thing"), 3),
        (click.UsageError("no such thing"), 2),
    ],
)
def test_expected_errors_are_one_message(error, code):
    result = raising(error)
    assert (result.exit_code, result.stdout) == (code, "")
    assert "no such thing" in result.stderr
    assert "Traceback" not in result.stderr


def test_our_own_bug_is_shown_whole_and_is_not_red():
    result = raising(ZeroDivisionError("oops"))
    assert result.exit_code == 3
    assert "Traceback" in result.stderr
    assert "bug in poolparity" in result.stderr


def test_interrupt_is_130():
    result = raising(KeyboardInterrupt())
    assert (result.exit_code, result.stderr) == (130, "poolparity: interrupted\n")


def test_messages_cannot_steer_the_terminal():
    assert "\\x1b[2J" in raising(UsageError("bad \x1b[2J name")).stderr
