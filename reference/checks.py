"""Small checks of arguments: each error names the argument, its value and the bound."""

from __future__ import annotations


def at_least(name: str, value: int, bound: int) -> None:
    """ValueError unless value >= bound."""
    if value < bound:
        msg = f"{name}={value} must be at least {bound}"
        raise ValueError(msg)


def index_below(name: str, value: int, bound: int) -> None:
    """IndexError unless 0 <= value < bound."""
    if not 0 <= value < bound:
        msg = f"{name}={value} lies outside 0..{bound - 1}"
        raise IndexError(msg)


def multiple_of(name: str, value: int, divisor: int, why: str) -> None:
    """ValueError unless divisor divides value."""
    if value % divisor:
        msg = f"{name}={value} must be a multiple of {divisor}: {why}"
        raise ValueError(msg)


def equal(name: str, value: object, expected: object, why: str) -> None:
    """ValueError unless value == expected."""
    if value != expected:
        msg = f"{name}={value!r} must be {expected!r}: {why}"
        raise ValueError(msg)
