"""The streams to a server: over the pipes of a program we start, or over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from dragoman.config.tools import McpServer
from dragoman.tools.process import open_pipe

Streams = tuple[Any, Any]

# Tells the process group and becomes the server: the package keeps the id to itself.
_LAUNCHER = ("/bin/sh", "-c", 'echo $$ >&2; exec "$@"', "sh")
_KEPT = 2000  # bytes
_LAST_WORDS_S = 0.5  # for what is still in the pipe once the server is gone
_CONNECT_S = 30.0
_READ_S = 300.0  # a server may think before it answers; the call has a time-out of its own


class Stderr(asyncio.Protocol):
    """What a server writes to stderr: first the launcher's line with its process group, then complaints.

    Only the end of them is kept, for the message when it dies; so it never fills up.
    """

    def __init__(self) -> None:
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._first = b""
        self._kept = b""

    def data_received(self, data: bytes) -> None:
        if b"\n" not in self._first:
            self._first, newline, data = (self._first + data).partition(b"\n")
            self._first += newline
        self._kept = (self._kept + data)[-_KEPT:]

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.ended.set_result(None)

    @property
    def group(self) -> int:
        """The process group, or 0 where nothing was started."""
        return int(self._first) if self._first.strip().isdigit() else 0

    @property
    def last_words(self) -> str:
        return self._kept.decode(errors="replace").strip()


@asynccontextmanager
async def open_streams(
    server: McpServer, cwd: Path, stderr: Stderr, *, on_end: Callable[[], None]
) -> AsyncIterator[Streams]:
    """A reading and a writing stream; `on_end` is called when nothing more can come."""
    connect = _over_http(server) if server.url else _over_pipes(server, cwd, stderr)
    async with connect as (reading, writing):
        yield _Watched(reading, on_end), writing


@asynccontextmanager
async def _over_http(server: McpServer) -> AsyncIterator[Streams]:
    timeout = httpx2.Timeout(_CONNECT_S, read=_READ_S)
    async with (
        httpx2.AsyncClient(headers=server.headers, timeout=timeout) as client,
        streamable_http_client(server.url, http_client=client) as streams,
    ):
        yield streams


@asynccontextmanager
async def _over_pipes(server: McpServer, cwd: Path, stderr: Stderr) -> AsyncIterator[Streams]:
    """The package passes on only what a program needs to run (PATH, HOME…), and what the settings give."""
    program, *args = *_LAUNCHER, *server.command
    parameters = StdioServerParameters(command=program, args=args, env=server.env, cwd=cwd)
    transport, writing = await open_pipe(stderr)
    try:
        with os.fdopen(writing, "w") as errors:
            async with stdio_client(parameters, errlog=errors) as streams:
                yield streams
    finally:
        _end_group(stderr.group)
        with contextlib.closing(transport), anyio.CancelScope(shield=True):
            await asyncio.wait({stderr.ended}, timeout=_LAST_WORDS_S)


def _end_group(group: int) -> None:
    """The package ends a server that does not go by itself; this ends what a server that went has left behind."""
    if group:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


class _Watched:
    """A reading stream that tells when it ends: the package itself only tells those who are waiting."""

    def __init__(self, stream: Any, on_end: Callable[[], None]) -> None:
        self._stream = stream
        self._on_end = on_end

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> _Watched:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except StopAsyncIteration:
            self._on_end()
            raise

    async def __aenter__(self) -> _Watched:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *exception: Any) -> Any:
        return await self._stream.__aexit__(*exception)
