"""Text that came from a SUT, made safe to show: it must not steer the terminal, nor be read as markup."""

from __future__ import annotations

import unicodedata

from rich.text import Text

_HIDDEN = frozenset({"Cc", "Cf", "Cs"})


def plain(text: str) -> str:
    r"""Return `text` with every control, format and surrogate character but newline and tab as its escape (`\x1b`)."""
    return "".join(_visible(char) for char in text)


def as_text(text: str, style: str = "") -> Text:
    """Return a rich Text of `plain(text)`: brackets stay brackets."""
    return Text(plain(text), style=style)


def _visible(char: str) -> str:
    if char in "\n\t" or unicodedata.category(char) not in _HIDDEN:
        return char
    return char.encode("unicode_escape").decode("ascii")
