"""The cell server: a process that has torch loaded and forks one child a cell. It never runs SUT code itself.

It reads commands as JSON lines from standard input and answers on the descriptor that was its standard output. When
its input closes (the parent ended, however) it kills every cell and ends.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import sys
import time
from dataclasses import dataclass
from types import FrameType

import msgspec
import psutil

from harness.cells import wire
from harness.cells.limits import adopt_orphans
from harness.cells.log import LOG_FILE, CappedLog
from harness.cells.request import Ended, Kill, Start
from harness.cells.trace import Trace

_CHUNK = 1 << 16
_STACK_S = 0.2
_STOP_S = 3.0


@dataclass(slots=True)
class _Child:
    """A cell's process: where its output comes from and goes to, and what it writes when it dies."""

    key: int
    output: int
    log: CappedLog
    trace: Trace


class Server:
    """The main loop: commands, the output of cells, and their ends."""

    def __init__(self, commands: int, answers: int) -> None:
        self.commands = commands
        self.answers = answers
        self.children: dict[int, _Child] = {}
        self.selector = selectors.DefaultSelector()
        self.selector.register(commands, selectors.EVENT_READ)
        self._wake_r, self._wake_w = os.pipe()
        os.set_blocking(self._wake_w, False)
        self.selector.register(self._wake_r, selectors.EVENT_READ)
        self._pending = b""

    def serve(self) -> None:
        """Serve until the input closes."""
        signal.signal(signal.SIGCHLD, self._child_ended)
        try:
            while True:
                for key, _ in self.selector.select():
                    if key.fd == self.commands:
                        if not self._read_commands():
                            return
                    elif key.fd == self._wake_r:
                        os.read(self._wake_r, _CHUNK)
                    else:
                        self._drain(key.data)
                self._reap()
        finally:
            for pid in self.children:
                _kill_group(pid)
            _kill_everything_below()

    def _child_ended(self, _number: int, _frame: FrameType | None) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_w, b"x")

    def _read_commands(self) -> bool:
        data = os.read(self.commands, _CHUNK)
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            command = wire.decode(line)
            if isinstance(command, Kill):
                for pid in [pid for pid, child in self.children.items() if child.key == command.key]:
                    os.kill(pid, signal.SIGUSR1)
                    time.sleep(_STACK_S)
                    _kill_group(pid)
            else:
                self._start(command)
        return bool(data)

    def _start(self, command: Start) -> None:
        read_end, write_end = os.pipe()
        trace, server = Trace(), os.getpid()
        pid = os.fork()
        if pid == 0:
            trace.record()
            self._become_cell(command, write_end, server)
        os.close(write_end)
        os.set_blocking(read_end, False)
        command.folder.mkdir(parents=True, exist_ok=True)
        child = _Child(command.key, read_end, CappedLog(command.folder / LOG_FILE), trace)
        self.children[pid] = child
        self.selector.register(read_end, selectors.EVENT_READ, child)

    def _become_cell(self, command: Start, output: int, server: int) -> None:
        """In the fork: let go of everything that is the server's, and run the cell. Never returns."""
        code = 70
        try:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            for fd in (self.commands, self.answers, self._wake_r, self._wake_w, output):
                os.close(fd)
            for other in self.children.values():
                os.close(other.output)
            from harness.cells.child import run_child  # noqa: PLC0415 - nothing of it belongs to the server

            code = run_child(command, server)
        except BaseException:  # noqa: BLE001 - shown in the cell's log; the exit code says that it was not the SUT
            import traceback  # noqa: PLC0415

            traceback.print_exc()
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _drain(self, child: _Child) -> None:
        """Move what a cell printed into its log."""
        try:
            data = os.read(child.output, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            self.selector.unregister(child.output)
            os.close(child.output)
            child.output = -1
            return
        child.log.write(data)

    def _reap(self) -> None:
        ended = False
        while self.children:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            child = self.children.pop(pid, None)
            if child is not None:
                ended = True
                self._finish(pid, child, os.waitstatus_to_exitcode(status), usage.ru_maxrss / 1024)
        if ended:
            self._kill_strays()

    def _finish(self, pid: int, child: _Child, status: int, rss: float) -> None:
        _kill_group(pid)
        while child.output >= 0 and self._has_output(child):
            self._drain(child)
        if child.output >= 0:
            self.selector.unregister(child.output)
            os.close(child.output)
        stack = child.trace.read()
        child.log.write(stack.encode())
        child.log.close()
        ended = Ended(key=child.key, status=status, peak_rss_mb=round(rss, 1), stack=stack)
        os.write(self.answers, msgspec.json.encode(ended) + b"\n")

    @staticmethod
    def _has_output(child: _Child) -> bool:
        with selectors.DefaultSelector() as now:
            now.register(child.output, selectors.EVENT_READ)
            return bool(now.select(timeout=0))

    def _kill_strays(self) -> None:
        """Kill the descendants that cells left behind: as their reaper we are their parent now."""
        for process in psutil.Process().children():
            if process.pid not in self.children:
                with contextlib.suppress(psutil.NoSuchProcess, psutil.TimeoutExpired):
                    process.kill()
                    process.wait(timeout=5)


def _kill_everything_below() -> None:
    """Kill and reap all descendants, also those that come to us only as their own parents die."""
    deadline = time.monotonic() + _STOP_S
    while (below := psutil.Process().children(recursive=True)) and time.monotonic() < deadline:
        for process in below:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.005)


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def preload() -> None:
    """Import what every cell needs and no cell may change, so that the forks share it."""
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # or torch._inductor keeps a pool of compilers ready
    import importlib  # noqa: PLC0415
    import importlib.util  # noqa: PLC0415
    import pkgutil  # noqa: PLC0415

    from harness import checks  # noqa: PLC0415

    for name in (*_PRELOADED, *(f"harness.checks.{module.name}" for module in pkgutil.iter_modules(checks.__path__))):
        importlib.import_module(name)
    for name in _PRELOADED_IF_HERE:
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name)
    import torch  # noqa: PLC0415

    torch.set_num_threads(1)


# Measured: forked with these loaded, a cell imports SGLang's pools in about a third of the time that it takes cold.
_PRELOADED = (
    "torch", "torch.distributed",
    "torch.multiprocessing", "torch.testing", "torch.profiler", "torch.utils.cpp_extension",
    "numpy", "msgspec", "packaging.version", "psutil",
    "asyncio", "http.client", "multiprocessing.resource_tracker", "unittest.mock", "_pytest.assertion.rewrite",
    "pytest", "hypothesis", "reference", "harness.plugin", "harness.cells.child",
)  # fmt: skip
_PRELOADED_IF_HERE = ("requests", "yaml", "gguf", "safetensors")


def main() -> None:
    """Serve on the inherited descriptors; whatever prints to standard output goes to standard error instead."""
    answers = os.dup(1)
    os.dup2(2, 1)
    os.set_inheritable(answers, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    adopt_orphans()
    preload()
    Server(0, answers).serve()
    os._exit(0)  # taking an interpreter with torch apart takes seconds, which the user would wait for


if __name__ == "__main__":
    main()
