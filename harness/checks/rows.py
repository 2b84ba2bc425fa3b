"""Rows that carry their origin.

Every 8-byte lane of a row holds (epoch, component, layer, slot, lane), scrambled by a bijection, so that the bytes look
random and still say where they came from when they turn up in the wrong place. A row whose width is no multiple of 8
ends in a 4-byte lane without the lane number, or in one to three bytes of it. In every eighth row the second lane is
replaced by NaN payloads, infinities, denormals and signed zeros of the pool's dtype, so a copy that goes through
arithmetic does not survive.
"""

from __future__ import annotations

import functools
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from harness.checks.mix import mix32, mix64, unmix32, unmix64

U8 = npt.NDArray[np.uint8]

COMPONENTS: Final = ("latent", "k", "v", "index_k", "scale", "index", "conv", "ssm")
LANE: Final = 8
_MAGIC: Final = 0b101101
_SPECIAL_EVERY: Final = 8

# Bit patterns a float copy may alter: quiet and signalling NaN with payloads, infinities, denormals, signed zeros.
_SPECIALS: Final[dict[str, bytes]] = {
    "bf16": np.array([0x7FC1, 0xFF81, 0x7F80, 0xFF80, 0x0001, 0x807F, 0x8000, 0x7FFF], "<u2").tobytes(),
    "fp16": np.array([0x7E01, 0xFC01, 0x7C00, 0xFC00, 0x0001, 0x83FF, 0x8000, 0x7FFF], "<u2").tobytes(),
    "fp32": np.array([0x7FC00001, 0xFF800001, 0x7F800000, 0x00000001, 0x80000000, 0x807FFFFF], "<u4").tobytes(),
    "fp8": bytes([0x7F, 0xFF, 0x7C, 0xFC, 0x01, 0x80, 0x7D, 0x83]),
}


class Origin(NamedTuple):
    """Where bytes came from. `shift` is how many bytes they moved within the row."""

    epoch: int
    component: str
    layer: int
    slot: int
    shift: int = 0


def _specials(dtype: str) -> bytes:
    return _SPECIALS["fp8" if dtype.startswith("fp8") else dtype]


@functools.lru_cache(maxsize=512)
def encode(epoch: int, component: str, layer: int, slots: int, row_bytes: int, dtype: str) -> U8:
    """Return the read-only rows of one plane: uint8 (slots, row_bytes)."""
    lanes, rest = divmod(row_bytes, LANE)
    slot = np.arange(slots, dtype=np.uint64)[:, None]
    fixed = np.uint64(_MAGIC << 58 | epoch << 52 | COMPONENTS.index(component) << 48 | layer << 40)
    words = fixed | slot << np.uint64(16) | np.arange(lanes, dtype=np.uint64)[None, :]
    parts = [mix64(words).view(np.uint8).reshape(slots, lanes * LANE)]
    if rest:
        parts.append(_tail(epoch, component, layer, slots)[:, :rest] if rest <= 4 else _long_tail(words, fixed, rest))  # noqa: PLR2004
    rows = np.concatenate(parts, axis=1)
    if lanes > 1:
        special = _specials(dtype)
        for number, row in enumerate(range(3, slots, _SPECIAL_EVERY)):
            start = number * LANE % len(special)
            rows[row, LANE : 2 * LANE] = np.frombuffer((special * 2)[start : start + LANE], np.uint8)
    rows.flags.writeable = False
    return rows


def _tail(epoch: int, component: str, layer: int, slots: int) -> U8:
    fixed = np.uint32((epoch & 0xF) << 28 | (COMPONENTS.index(component) & 0x7) << 25 | (layer & 0x3F) << 19)
    return mix32(fixed | np.arange(slots, dtype=np.uint32)).view(np.uint8).reshape(slots, 4)


def _long_tail(words: npt.NDArray[np.uint64], fixed: np.uint64, rest: int) -> U8:
    slot = np.arange(len(words), dtype=np.uint64) << np.uint64(16)
    last = mix64(fixed | slot | np.uint64(words.shape[1]))
    return last.view(np.uint8).reshape(len(words), LANE)[:, :rest]


def decode(row: U8) -> Origin | None:
    """Return where most of a row's bytes came from, or None when they carry no origin."""
    if len(row) == 4:  # noqa: PLR2004 - one 4-byte lane
        return _decode_narrow(row)
    votes: dict[Origin, int] = {}
    for start in range(min(LANE, max(len(row) - LANE + 1, 0))):
        count = (len(row) - start) // LANE
        words = unmix64(np.frombuffer(row[start : start + count * LANE].tobytes(), np.uint64))
        for at, word in enumerate(words.tolist()):
            origin = _origin(word, start + at * LANE)
            if origin is not None:
                votes[origin] = votes.get(origin, 0) + 1
    best = max(votes, key=lambda o: (votes[o], o.shift == 0), default=None)
    # One lane in 128 of random bytes looks like an origin: rows of four lanes and more need two that agree.
    return best if best is not None and votes[best] >= min(2, len(row) // (2 * LANE)) else None


def _origin(word: int, at: int) -> Origin | None:
    component = word >> 48 & 0xF
    if word >> 58 != _MAGIC or component >= len(COMPONENTS):
        return None
    shift = at - (word & 0xFFFF) * LANE
    return Origin(word >> 52 & 0x3F, COMPONENTS[component], word >> 40 & 0xFF, word >> 16 & 0xFFFFFF, shift)


def _decode_narrow(row: U8) -> Origin:
    word = int(unmix32(np.frombuffer(row.tobytes(), np.uint32))[0])
    return Origin(word >> 28, COMPONENTS[word >> 25 & 0x7], word >> 19 & 0x3F, word & 0x7FFFF)
