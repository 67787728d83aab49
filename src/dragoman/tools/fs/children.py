"""A child process as lines of output, gone when we stop reading."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

_MAX_LINE_BYTES = 16 * 1024 * 1024


class Child:
    """`code` is set when the program ended by itself."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.code: int | None = None

    async def lines(self) -> AsyncGenerator[bytes]:
        assert self._process.stdout  # noqa: S101  asked for below
        async for line in self._process.stdout:
            yield line
        self.code = await self._process.wait()


@contextlib.asynccontextmanager
async def started(
    argv: Sequence[str], *, stdin: bytes = b"", cwd: str = "/", keep: Sequence[int] = ()
) -> AsyncIterator[Child]:
    """`keep` are descriptors that the program inherits; the environment it does not."""
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
        yield Child(process)
    finally:
        feeding.cancel()
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await asyncio.gather(feeding, process.wait(), return_exceptions=True)
        if process.stdout:
            await process.stdout.read()  # so that the pipe is closed with the process


async def _feed(process: asyncio.subprocess.Process, data: bytes) -> None:
    assert process.stdin  # noqa: S101
    with contextlib.suppress(ConnectionError):  # it found enough and left
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()
