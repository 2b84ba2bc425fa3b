"""What a cell is asked to do, as plain data that travels to the server and into a bundle."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from harness.sut.spec import SutTree


class CellRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One SUT on one platform. Times are seconds, memory is MiB of private data.

    `ids` limits the cell to those cases; `collect_only` runs none; `stop_at_red` runs no further than the first case
    that the SUT fails or that could not be asked; `traced` adds a `touched` event for each case: the files of the SUT
    that ran in it. `suites_root` is where the suites are (tests use their own).
    """

    sut: SutTree
    platform: str
    mode: str = "auto"
    suites: tuple[str, ...] = ("kv", "moe", "platform")
    keyword: str = ""
    seed: int = 0
    case_timeout_s: float = 60.0
    cell_timeout_s: float = 1800.0
    memory_mb: int = 4096
    ids: tuple[str, ...] | None = None
    collect_only: bool = False
    stop_at_red: bool = False
    traced: bool = False
    suites_root: Path | None = None


class Start(msgspec.Struct, frozen=True, kw_only=True, tag="start"):
    """To the server: fork a child for a cell. `done` are the ids that have an outcome already."""

    key: int
    request: CellRequest
    folder: Path
    done: tuple[str, ...] = ()


class Kill(msgspec.Struct, frozen=True, kw_only=True, tag="kill"):
    """To the server: kill a cell's whole process group, after its stack was written."""

    key: int


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """From the server: a cell's child ended. `status` is its exit code, or minus the signal that killed it.

    `stack` is where it was, as faulthandler wrote it, when it died of a signal or was killed for being late.
    """

    key: int
    status: int
    peak_rss_mb: float
    stack: str = ""


Command = Start | Kill


def folder_name(number: int, request: CellRequest) -> str:
    """Return the name of a cell's folder in a bundle: `03-sglang-0.5.19-ascend`."""
    sut = re.sub(r"[^A-Za-z0-9.]+", "-", request.sut.name).strip("-.")[-40:]
    return f"{number:02d}-{sut}-{request.platform}"
