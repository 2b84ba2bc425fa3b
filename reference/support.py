"""Pool x layout x io backend x platform: what must work, and what must be refused and how.

Sources: FACTS.md sections 1.5, 2.2 to 2.4 and 4, read from releases 0.5.16 to 0.5.23.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from reference.layouts import LAYOUTS

PLATFORMS: Final = ("cuda", "rocm", "ascend", "xpu", "cpu")
IO_BACKENDS: Final = ("kernel", "direct", "kernel_ascend")
POOLS: Final = ("mla", "mha", "dsa_indexer", "mamba")


@dataclass(frozen=True, slots=True)
class Works:
    """The combination must work. `since` is the first release that has it, where that is not every release."""

    since: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The combination must be refused with `error`, whose text names what `why` names."""

    error: type[Exception]
    why: str


_Pairs = frozenset[tuple[str, str]]

# (layout, io backend) pairs that work on platforms whose kernel package has sgl_kernel.kvcacheio.
_GPU: Final[dict[str, _Pairs]] = {
    "mla": frozenset(
        {
            ("layer_first", "kernel"),
            ("page_first", "kernel"),
            ("layer_first", "direct"),
            ("page_first_direct", "direct"),
        }
    ),
    "mha": frozenset(
        {
            ("layer_first", "kernel"),
            ("page_first", "kernel"),
            ("page_head", "kernel"),
            ("layer_first", "direct"),
            ("page_first_direct", "direct"),
        }
    ),
    "dsa_indexer": frozenset(
        {
            ("layer_first", "kernel"),
            ("page_first", "kernel"),
            ("layer_first", "direct"),
            ("page_first_direct", "direct"),
        }
    ),
}
# Ascend's pools move by one kernel, in the layout that mirrors their device tensors; its indexer rows travel inside
# the split MLA pool, so the DSA indexer pool has no backend there.
_ASCEND: Final[dict[str, _Pairs]] = {
    "mla": frozenset({("page_first_kv_split", "kernel_ascend")}),
    "mha": frozenset({("page_first_direct", "kernel_ascend")}),
    "dsa_indexer": frozenset(),
}
_LAYOUTS_OF: Final[dict[str, tuple[str, ...]]] = {
    "mla": LAYOUTS,
    "mha": ("layer_first", "page_first", "page_first_direct", "page_head", "page_unified"),
    "dsa_indexer": ("layer_first", "page_first", "page_first_direct"),
    "mamba": ("layer_first", "page_first", "page_first_direct"),
}
# The XPU wheel's transfer functions are used from this release on (FACTS.md section 1.4).
_XPU_SINCE: Final = "0.5.21"


def _check_known(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        msg = f"{name}={value!r} is not known; expected one of {', '.join(known)}"
        raise ValueError(msg)


def decide(platform: str, layout: str, io_backend: str, *, pool: str = "mla") -> Works | Refused:
    """Say whether a pool can back up and load in a layout through an io backend on a platform.

    An unknown layout or io backend is refused like any other; an unknown platform or pool is a ValueError.
    """
    _check_known("platform", platform, PLATFORMS)
    _check_known("pool", pool, POOLS)
    if layout not in _LAYOUTS_OF[pool]:
        return Refused(ValueError, f"Unsupported layout: {layout} is no layout of the {pool} pool")
    if io_backend not in IO_BACKENDS:
        return Refused(ValueError, f"Unsupported IO backend: {io_backend} is none of {', '.join(IO_BACKENDS)}")
    if platform == "cpu":
        return Refused(ValueError, f"Unsupported IO backend: {io_backend} has no kernels on platform cpu")
    return _decide_pair(platform, layout, io_backend, pool)


def _decide_pair(platform: str, layout: str, io_backend: str, pool: str) -> Works | Refused:
    pairs = (_ASCEND if platform == "ascend" else _GPU).get(pool, frozenset())
    if (layout, io_backend) in pairs:
        return Works(_XPU_SINCE if platform == "xpu" else None)
    if io_backend not in {backend for _, backend in pairs}:
        why = f"Unsupported IO backend: {io_backend} does not serve the {pool} pool on platform {platform}"
        return Refused(ValueError, why)
    legal = ", ".join(sorted(at for at, backend in pairs if backend == io_backend))
    why = f"Unsupported layout: {layout} cannot move through io backend {io_backend} on {platform}; {legal} can"
    return Refused(ValueError, why)
