"""Run a program with a timeout, capture its output, and kill everything it started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

_TERM_S = 0.5  # between SIGTERM and SIGKILL
_DRAIN_S = 1.0  # wait for buffered output after the process group was killed
_PROGRESS_S = 0.1  # minimum interval between two progress lines
_MAX_LINE = 500


class ProcessResult(msgspec.Struct, frozen=True, kw_only=True):
    """A program's output and exit code: negative for a signal, None if the program was stopped by the timeout."""

    output: str
    code: int | None


class HeadAndTail:
    """Buffer that keeps the beginning and the end of an output: errors are usually in one of them."""

    def __init__(self, max_bytes: int) -> None:
        self._head_max = max_bytes // 2
        self._tail_max = max_bytes - self._head_max
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def feed(self, chunk: bytes) -> None:
        room = self._head_max - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        if len(self._tail) > 2 * self._tail_max:  # not for every chunk, because cutting copies
            self._cut()

    def text(self) -> str:
        self._cut()
        if not self._dropped:
            return (self._head + self._tail).decode(errors="replace")
        head, tail = self._head.decode(errors="replace"), self._tail.decode(errors="replace")
        return f"{head}\n[… {self._dropped} bytes left out …]\n{tail}"

    def _cut(self) -> None:
        excess = len(self._tail) - self._tail_max
        if excess > 0:
            del self._tail[:excess]
            self._dropped += excess


class _Collector(asyncio.Protocol):
    """Protocol for the reading end of the pipe; collects the output and reports its last line as progress."""

    def __init__(self, output: HeadAndTail, progress: Callable[[str], None]) -> None:
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = loop.create_future()
        self._output = output
        self._progress = progress
        self._clock = loop.time
        self._reported_s = float("-inf")

    def data_received(self, data: bytes) -> None:
        self._output.feed(data)
        if self._clock() - self._reported_s >= _PROGRESS_S:
            self._reported_s = self._clock()
            self._progress(data[-_MAX_LINE:].decode(errors="replace").rstrip().rpartition("\n")[2])

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.ended.set_result(None)


async def run_process(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_s: float,
    max_bytes: int,
    progress: Callable[[str], None],
) -> ProcessResult:
    """Run a program and return its stdout and stderr as one text, in the order they were written.

    After the exit, the timeout or a cancellation the whole process group is killed. Raises `OSError` or
    `ValueError` if the program cannot be started.
    """
    # asyncio's own pipes would make `wait()` wait for every background process that inherited them.
    output = HeadAndTail(max_bytes)
    collector = _Collector(output, progress)
    transport, writing = await open_pipe(collector)
    try:
        process = await _start(argv, cwd, env, writing)
    except BaseException:
        transport.close()
        raise
    finally:
        os.close(writing)
    code: int | None = None
    try:
        async with asyncio.timeout(timeout_s):
            code = await process.wait()
    except TimeoutError:
        _signal_group(process, signal.SIGTERM)
        await asyncio.wait({collector.ended}, timeout=_TERM_S)
    finally:
        _signal_group(process, signal.SIGKILL)  # also kills background processes of a finished command
        with contextlib.closing(transport):
            await process.wait()
            await asyncio.wait({collector.ended}, timeout=_DRAIN_S)
    return ProcessResult(output=output.text(), code=code)


async def open_pipe(reader: asyncio.Protocol) -> tuple[asyncio.ReadTransport, int]:
    """Create a pipe that feeds `reader`; return its transport and the descriptor to write to.

    The transport owns the reading end; the caller must close the writing end.
    """
    reading, writing = os.pipe()
    try:
        pipe = os.fdopen(reading, "rb", 0)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: reader, pipe)
    except BaseException:
        os.close(writing)
        raise
    return transport, writing


async def _start(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], output: int
) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *argv,
        cwd=cwd,
        env=env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )


def _signal_group(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
