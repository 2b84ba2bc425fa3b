"""How commands travel to the cell server: one JSON object a line; paths as strings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from harness.cells.request import Command


def _encode_path(value: object) -> str:
    if isinstance(value, Path):
        return str(value)
    msg = f"cannot send {value!r} to the cell server; expected plain data and paths"
    raise NotImplementedError(msg)


def _decode_path(kind: type, value: Any) -> Any:
    if kind is Path:
        return Path(value)
    msg = f"cannot read a {kind.__name__} from the cell server's input; expected plain data and paths"
    raise NotImplementedError(msg)


_ENCODER = msgspec.json.Encoder(enc_hook=_encode_path)
_DECODER: msgspec.json.Decoder[Command] = msgspec.json.Decoder(Command, dec_hook=_decode_path)


def encode(command: Command) -> bytes:
    """Return a command as one line, newline included."""
    return _ENCODER.encode(command) + b"\n"


def decode(line: bytes) -> Command:
    """Return the command of one line."""
    return _DECODER.decode(line)
