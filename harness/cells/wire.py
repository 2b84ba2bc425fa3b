"""What coordinator and server say to each other: one JSON object a line, over a socket pair."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from harness.cells import CellRequest

T = TypeVar("T")
_CHUNK: Final = 1 << 16


class ChildOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What a child is to do.

    `ids`: the only case ids to run (None: what the request selects). `events` and `log` are named pipes that the
    coordinator reads; `scratch` is an empty folder to work in. `share`: how many cells run at a time with this one.
    """

    request: CellRequest
    ids: tuple[str, ...] | None
    events: Path
    log: Path
    scratch: Path
    share: int = 1


class Spawn(msgspec.Struct, frozen=True, tag=True):
    """Fork a child for the cell with this key."""

    key: int
    order: ChildOrder


class Kill(msgspec.Struct, frozen=True, tag=True):
    """End the child of a cell at once, with everything it started."""

    key: int


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The server has loaded what children share; `threads` must be 1 for forking to be safe."""

    seconds: float
    threads: int


class Gone(msgspec.Struct, frozen=True, tag=True):
    """The supervisor of a cell ended, after everything below it; `status` is its own, as `waitpid` gives it."""

    key: int
    status: int


Command = Spawn | Kill
Report = Ready | Gone


def encode(message: object) -> bytes:
    """Return a message as one JSON line; paths become texts."""
    return msgspec.json.encode(message, enc_hook=_plain) + b"\n"


def decode(line: bytes, kind: type[T] | Any) -> T:
    """Read a message of type `kind`; raises msgspec.MsgspecError."""
    return msgspec.json.decode(line, type=kind, dec_hook=_typed)  # type: ignore[no-any-return]  # kind may be a union


def _plain(value: object) -> str:
    if isinstance(value, Path):
        return str(value)
    msg = f"cannot send a {type(value).__name__} between processes; expected what JSON knows, or a path"
    raise TypeError(msg)


def _typed(kind: type, value: Any) -> Path:
    if kind is Path:
        return Path(value)
    msg = f"cannot receive a {kind.__name__}; expected what JSON knows, or a path"
    raise TypeError(msg)


class Lines:
    """Cuts a stream of bytes into lines."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the lines that are whole now."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        yield from filter(None, whole)


class Peer:
    """One end of the socket pair."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._lines = Lines()

    def fileno(self) -> int:
        """For selectors."""
        return self.sock.fileno()

    def send(self, message: object) -> None:
        """Send one message; OSError when the other side is gone."""
        self.sock.sendall(encode(message))

    def receive(self) -> list[bytes] | None:
        """Return the lines that arrived (wait for some when there are none), None when the other side is gone."""
        try:
            data = self.sock.recv(_CHUNK)
        except ConnectionError:
            return None
        return list(self._lines.feed(data)) if data else None
