"""Say what happened when bytes differ, not only that they do.

A row that turns up in the wrong place is named with the place it came from; a row that was never written, written
although nobody named it, or damaged in part is called that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.checks.rows import U8, Origin, decode

_SHOWN = 3


class Difference(NamedTuple):
    """Rows of one plane that differ: their slots, and the bytes found and expected, (rows, row_bytes) each."""

    side: str
    component: str
    layer: int
    slots: npt.NDArray[np.intp]
    found: U8
    expected: U8


class Mismatch(AssertionError):  # noqa: N818 - an outcome of a comparison
    """Bytes are not what they must be. `location` is the SUT's last line that moved any, `sglang/…/file.py:line`."""

    def __init__(self, message: str, sites: Sequence[str]) -> None:
        self.location = sites[-1] if sites else ""
        super().__init__(f"{message}\nmoved at {', '.join(sites)}" if sites else message)


def explain(what: str, differences: Sequence[Difference], epochs: Mapping[int, str]) -> str:
    """Return a message of a few lines: the first differing rows one by one, then how many more there are."""
    rows = sum(len(d.slots) for d in differences)
    planes = ", ".join(f"{d.side} {d.component} layer {d.layer}: {len(d.slots)}" for d in differences[:6])
    more = f", and {len(differences) - 6} more planes" if len(differences) > 6 else ""  # noqa: PLR2004 - as sliced above
    lines = [_row(d, i, epochs) for d in differences for i in range(len(d.slots))][:_SHOWN]
    head = f"{what}: {lines[0]}"
    return "\n".join([head, *lines[1:], f"({rows} rows differ; {planes}{more})"])


def _row(d: Difference, i: int, epochs: Mapping[int, str]) -> str:
    slot = int(d.slots[i])
    where = f"{d.side} slot {slot}, layer {d.layer} ({d.component})"
    got, want = decode(d.found[i]), decode(d.expected[i])
    wrong = np.flatnonzero(d.found[i] != d.expected[i])
    if got is not None and want is not None and got == want:
        return f"{where}: {_bytes(d, i, wrong)} of {_name(want, epochs)}"
    if _untouched(got, d, slot, epochs):
        return f"{where} was not written; expected {_name(want, epochs)}"
    if _untouched(want, d, slot, epochs):
        return f"{where} was written although nothing named it: it holds {_name(got, epochs)}"
    partial = "" if len(wrong) > d.found.shape[1] // 2 else f" in {_bytes(d, i, wrong)}"
    return f"{where} holds {_name(got, epochs)}{partial}; expected {_name(want, epochs)}"


def _untouched(origin: Origin | None, d: Difference, slot: int, epochs: Mapping[int, str]) -> bool:
    """Whether a row is what its own place was filled with."""
    if origin is None or origin[2:] != (d.layer, slot, 0):
        return False
    return epochs.get(origin.epoch, "").startswith(d.side)


def _bytes(d: Difference, i: int, wrong: npt.NDArray[np.intp]) -> str:
    first, last = int(wrong[0]), int(wrong[-1])
    at = slice(first, first + 4)
    found, expected = d.found[i][at].tobytes().hex(), d.expected[i][at].tobytes().hex()
    return f"{len(wrong)} wrong bytes between {first} and {last} (found {found}…, expected {expected}…)"


def _name(origin: Origin | None, epochs: Mapping[int, str]) -> str:
    if origin is None or origin.epoch not in epochs:
        return "bytes of no known row"
    label = epochs[origin.epoch]
    text = f"{label} slot {origin.slot}, layer {origin.layer}"
    if origin.component not in ("latent", "k"):
        text += f" ({origin.component})"
    return f"{text} shifted by {origin.shift} bytes" if origin.shift else text
