"""A function in a fresh process: forked from the cell after the emulation, before the SUT was ever imported.

The cell keeps a pristine fork of itself, the zygote. For each call the zygote forks a runner, which forks a worker and
reports for it when it dies without an answer. Answers are JSON; the worker cannot hurt the cell.
"""

from __future__ import annotations

import importlib
import os
import select
import signal
import socket
import time
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import msgspec

_LIMIT_S = 120.0
_MAX_ANSWER = 1 << 20


class FreshError(RuntimeError):
    """What a function raised in a fresh process, or how that process ended."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call, or the error that it raised (`error` is empty then)."""

    value: Any = None
    error: str = ""
    trace: str = ""

    def unwrap(self) -> Any:
        """Return the value; raises FreshError for an error."""
        if self.error:
            failed = FreshError(self.error)
            failed.add_note(self.trace)
            raise failed
        return self.value


class _Call(msgspec.Struct, frozen=True):
    function: str
    args: list[Any]
    kwargs: dict[str, Any]


class Zygote:
    """The pristine fork, as the cell sees it. It ends when the cell does: its socket closes."""

    def __init__(self) -> None:
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if os.fork() == 0:
            mine.close()
            _serve(theirs)
        theirs.close()
        self._socket = mine
        self._started: dict[bytes, int] = {}

    def start(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bytes:
        """Have a call begin; returns its key. A call that has begun and was not awaited yet is not begun twice."""
        key = msgspec.json.encode(_Call(function, list(args), dict(kwargs)))
        if key not in self._started:
            read_end, write_end = os.pipe()
            socket.send_fds(self._socket, [key], [write_end])
            os.close(write_end)
            self._started[key] = read_end
        return key

    def result(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Answer:
        """Wait for a call, begun now or earlier."""
        fd = self._started.pop(self.start(function, args, kwargs))
        try:
            data = _read_all(fd, time.monotonic() + _LIMIT_S)
        finally:
            os.close(fd)
        if data is None:
            return Answer(error=f"{function} gave no answer within {_LIMIT_S:g} s in a fresh process")
        return msgspec.json.decode(data, type=Answer)


def _read_all(fd: int, deadline: float) -> bytes | None:
    data = b""
    while (left := deadline - time.monotonic()) > 0 and len(data) < _MAX_ANSWER:
        if not select.select([fd], [], [], left)[0]:
            return None
        part = os.read(fd, 1 << 16)
        if not part:
            return data
        data += part
    return None


def _serve(requests: socket.socket) -> NoReturn:
    """The zygote's loop."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        data, fds, _, _ = socket.recv_fds(requests, _MAX_ANSWER, 1)
        if not data:
            os._exit(0)
        if os.fork() == 0:
            requests.close()
            _run(data, fds[0])
        os.close(fds[0])


def _run(data: bytes, answer: int) -> NoReturn:
    """The runner: forks the worker and speaks for it when it dies."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    reader, writer = os.pipe()
    worker = os.fork()
    if worker == 0:
        os.close(reader)
        os.write(writer, msgspec.json.encode(_work(msgspec.json.decode(data, type=_Call))))
        os._exit(0)
    os.close(writer)
    found = _read_all(reader, time.monotonic() + _LIMIT_S)
    if found is None:
        os.kill(worker, signal.SIGKILL)
    _, status = os.waitpid(worker, 0)
    code = os.waitstatus_to_exitcode(status)
    if not found:
        how = f"died of {signal.Signals(-code).name}" if code < 0 else f"ended itself with exit code {code}"
        found = msgspec.json.encode(Answer(error=f"the fresh process {how} without an answer"))
    view = memoryview(found)
    while view:
        view = view[os.write(answer, view) :]
    os._exit(0)


def _work(call: _Call) -> Answer:
    module, _, name = call.function.partition(":")
    try:
        value = getattr(importlib.import_module(module), name)(*call.args, **call.kwargs)
        return Answer(value=msgspec.to_builtins(value))
    except BaseException as error:  # noqa: BLE001 - whatever it is, the cell is told
        return Answer(error=f"{type(error).__name__}: {error}", trace=traceback.format_exc(limit=-12))
