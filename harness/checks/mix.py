"""Invertible integer mixers: they make bytes look random, and let a comparison read the origin back out of them.

The 64-bit mixer is the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014); the 32-bit one is the finaliser of
MurmurHash3 (Appleby). Both are bijections: xor-shifts and multiplications by odd constants, undone in reverse order.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

U64 = npt.NDArray[np.uint64]
U32 = npt.NDArray[np.uint32]

_A64, _B64 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_A32, _B32 = 0x85EBCA6B, 0xC2B2AE35
_INV_A64, _INV_B64 = pow(_A64, -1, 1 << 64), pow(_B64, -1, 1 << 64)
_INV_A32, _INV_B32 = pow(_A32, -1, 1 << 32), pow(_B32, -1, 1 << 32)


def mix64(z: U64) -> U64:
    """Scramble 64-bit words; any shape."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_A64)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_B64)
    return z ^ (z >> np.uint64(31))


def unmix64(z: U64) -> U64:
    """Undo `mix64`."""
    z = z ^ (z >> np.uint64(31)) ^ (z >> np.uint64(62))
    z = z * np.uint64(_INV_B64)
    z = z ^ (z >> np.uint64(27)) ^ (z >> np.uint64(54))
    z = z * np.uint64(_INV_A64)
    undone: U64 = z ^ (z >> np.uint64(30)) ^ (z >> np.uint64(60))
    return undone


def mix32(z: U32) -> U32:
    """Scramble 32-bit words; any shape."""
    z = (z ^ (z >> np.uint32(16))) * np.uint32(_A32)
    z = (z ^ (z >> np.uint32(13))) * np.uint32(_B32)
    return z ^ (z >> np.uint32(16))


def unmix32(z: U32) -> U32:
    """Undo `mix32`."""
    z = z ^ (z >> np.uint32(16))
    z = z * np.uint32(_INV_B32)
    z = z ^ (z >> np.uint32(13)) ^ (z >> np.uint32(26))
    z = z * np.uint32(_INV_A32)
    return z ^ (z >> np.uint32(16))
