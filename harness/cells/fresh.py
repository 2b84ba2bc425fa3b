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
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from harness.cells.limits import die_with_parent
from harness.cells.trace import Trace, deepest, describe
from harness.verdicts.causes import Cause, Judged, cause_of
from harness.verdicts.outcomes import Outcome

_STACK_S = 0.2
_SPARE_S = 5.0
_CHUNK = 1 << 16


class FreshError(Judged):
    """What a function raised in a fresh process, judged there, or how that process ended."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call; or why it failed: the cause, with the traceback."""

    value: Any = None
    cause: Cause | None = None
    trace: str = ""

    def unwrap(self) -> Any:
        """Return the value; raises FreshError for a failure."""
        if self.cause is not None:
            failed = FreshError(self.cause)
            failed.add_note(self.trace)
            raise failed
        return self.value


class _Call(msgspec.Struct, frozen=True):
    function: str
    args: list[Any]
    kwargs: dict[str, Any]


class Zygote:
    """The pristine fork, as the cell sees it. It ends when the cell does: its socket closes.

    `root` is the SUT's (None: the reference), to judge failures by. A call may take `limit_s` seconds.
    """

    def __init__(self, root: Path | None, limit_s: float) -> None:
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        cell = os.getpid()
        if os.fork() == 0:
            mine.close()
            die_with_parent(cell)
            _serve(theirs, root, limit_s)
        theirs.close()
        self._socket = mine
        self._limit_s = limit_s
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
            line = _read_line(fd, self._limit_s + _SPARE_S)
        finally:
            os.close(fd)
        if line is None:
            cause = Cause(Outcome.ERROR, f"the zygote gave no answer for {function}; expected one in any case", "")
            return Answer(cause=cause)
        return msgspec.json.decode(line, type=Answer)


def _read_line(fd: int, seconds: float) -> bytes | None:
    """Read up to the first newline; None when the other side ended or took too long.

    A daemon that the SUT started may hold the pipe open for ever, so its end says nothing.
    """
    deadline, data = time.monotonic() + seconds, b""
    while (left := deadline - time.monotonic()) > 0 and select.select([fd], [], [], left)[0]:
        part = os.read(fd, _CHUNK)
        data += part
        if not part or data.endswith(b"\n"):
            break
    return data if data.endswith(b"\n") else None


def _write(fd: int, answer: Answer) -> None:
    _pass_on(fd, msgspec.json.encode(answer) + b"\n")


def _pass_on(fd: int, line: bytes) -> None:
    rest = memoryview(line)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _serve(requests: socket.socket, root: Path | None, limit_s: float) -> NoReturn:
    """The zygote's loop."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    zygote = os.getpid()
    while True:
        data, fds, _, _ = socket.recv_fds(requests, _CHUNK, 1)
        if not data:
            os._exit(0)
        if os.fork() == 0:
            requests.close()
            die_with_parent(zygote)
            _run(msgspec.json.decode(data, type=_Call), fds[0], root, limit_s)
        os.close(fds[0])


def _run(call: _Call, out: int, root: Path | None, limit_s: float) -> NoReturn:
    """The runner: forks the worker and speaks for it when it dies."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    reader, writer = os.pipe()
    trace, runner = Trace(), os.getpid()
    worker = os.fork()
    if worker == 0:
        die_with_parent(runner)
        trace.record()
        os.close(out)
        _write(writer, _work(call, root))
        os._exit(0)
    os.close(writer)
    started = time.monotonic()
    line = _read_line(reader, limit_s)
    late = line is None and time.monotonic() - started >= limit_s
    if late:
        os.kill(worker, signal.SIGUSR1)
        time.sleep(_STACK_S)
    os.kill(worker, signal.SIGKILL)  # it has ended, or has nothing left to do
    _, status = os.waitpid(worker, 0)
    if line is None:
        how = f"the fresh process {describe(os.waitstatus_to_exitcode(status))}"
        cause = Cause(Outcome.CRASH, how, deepest(trace.read(), root))
        if late:
            cause = cause._replace(outcome=Outcome.TIMEOUT, message=f"did not end within {limit_s:g} s")
        _write(out, Answer(cause=cause))
    else:
        _pass_on(out, line)
    os._exit(0)


def _work(call: _Call, root: Path | None) -> Answer:
    module, _, name = call.function.partition(":")
    try:
        value = getattr(importlib.import_module(module), name)(*call.args, **call.kwargs)
        return Answer(value=msgspec.to_builtins(value))
    except BaseException as error:  # noqa: BLE001 - whatever it is, the cell is told
        return Answer(cause=cause_of(error, root), trace=traceback.format_exc(limit=-12))
