"""Run a child process, read its output line by line, and kill it when the block ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

_MAX_LINE_BYTES = 16 * 1024 * 1024


class ChildProcess:
    """A running child process; `code` is set once it has exited by itself."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.exit_code: int | None = None

    async def lines(self) -> AsyncGenerator[bytes]:
        assert self._process.stdout  # noqa: S101  (a pipe, see below)
        async for line in self._process.stdout:
            yield line
        self.exit_code = await self._process.wait()


@contextlib.asynccontextmanager
async def start_process(
    argv: Sequence[str], *, stdin: bytes = b"", cwd: str = "/", keep: Sequence[int] = ()
) -> AsyncIterator[ChildProcess]:
    """Start a program with an empty environment; `keep` are the descriptors it inherits. Kill it at the end."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=cwd,
        env={},
        pass_fds=keep,
        limit=_MAX_LINE_BYTES,
    )
    feeding = asyncio.ensure_future(_feed(process, stdin))
    try:
        yield ChildProcess(process)
    finally:
        feeding.cancel()
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await asyncio.gather(feeding, process.wait(), return_exceptions=True)
        if process.stdout:
            await process.stdout.read()  # read to the end, so that the pipe's transport is closed


async def _feed(process: asyncio.subprocess.Process, data: bytes) -> None:
    assert process.stdin  # noqa: S101
    with contextlib.suppress(ConnectionError):  # the child exited before it had read everything
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()
