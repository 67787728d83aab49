"""The streams to an MCP server: stdin and stdout of a program that we start, or streamable HTTP."""

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

# Prints its process id and then becomes the server: the SDK does not expose the id of the process it starts.
_LAUNCHER = ("/bin/sh", "-c", 'echo $$ >&2; exec "$@"', "sh")
_MAX_STDERR_BYTES = 2000  # bytes of stderr
_STDERR_WAIT_S = 0.5  # wait for stderr output that is still in the pipe after the server's exit
_CONNECT_S = 30.0
_READ_S = 300.0  # a server may take long to respond; each call has its own timeout


class StderrReader(asyncio.Protocol):
    """Reads a server's stderr: first the launcher's line with the process group, then the server's messages.

    Only the end of the messages is kept, for the error message when the server dies. The pipe is always read, so it
    never fills up and blocks the server.
    """

    def __init__(self) -> None:
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._first = b""
        self._kept = b""

    def data_received(self, data: bytes) -> None:
        if b"\n" not in self._first:
            self._first, newline, data = (self._first + data).partition(b"\n")
            self._first += newline
        self._kept = (self._kept + data)[-_MAX_STDERR_BYTES:]

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.ended.set_result(None)

    @property
    def group(self) -> int:
        """The server's process group, or 0 if no program was started."""
        return int(self._first) if self._first.strip().isdigit() else 0

    @property
    def tail(self) -> str:
        return self._kept.decode(errors="replace").strip()


@asynccontextmanager
async def open_streams(
    server: McpServer, cwd: Path, stderr: StderrReader, *, on_end: Callable[[], None]
) -> AsyncIterator[Streams]:
    """Connect and yield a reading and a writing stream; `on_end` is called when the reading stream ends."""
    connect = _over_http(server) if server.url else _over_pipes(server, cwd, stderr)
    async with connect as (reading, writing):
        yield _NotifyingStream(reading, on_end), writing


@asynccontextmanager
async def _over_http(server: McpServer) -> AsyncIterator[Streams]:
    timeout = httpx2.Timeout(_CONNECT_S, read=_READ_S)
    async with (
        httpx2.AsyncClient(headers=server.headers, timeout=timeout) as client,
        streamable_http_client(server.url, http_client=client) as streams,
    ):
        yield streams


@asynccontextmanager
async def _over_pipes(server: McpServer, cwd: Path, stderr: StderrReader) -> AsyncIterator[Streams]:
    """Start the program; the SDK passes on only basic variables (PATH, HOME…) and those in the settings."""
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
            await asyncio.wait({stderr.ended}, timeout=_STDERR_WAIT_S)


def _end_group(group: int) -> None:
    """Kill the rest of the process group: the SDK stops the server itself, but not what it has started."""
    if group:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


class _NotifyingStream:
    """A reading stream that calls `on_end` when it ends; the SDK only notifies pending requests."""

    def __init__(self, stream: Any, on_end: Callable[[], None]) -> None:
        self._stream = stream
        self._on_end = on_end

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> _NotifyingStream:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except StopAsyncIteration:
            self._on_end()
            raise

    async def __aenter__(self) -> _NotifyingStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *exception: Any) -> Any:
        return await self._stream.__aexit__(*exception)
