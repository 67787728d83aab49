"""The connection to one MCP server: connect, list the tools, call them, and reconnect when the server dies.

One task owns the connection from beginning to end, because anyio's cancel scopes must be exited in the task that
entered them. Calls come from other tasks and communicate with it through `_client`, `_ready` and `_wake`. The
streams are stdin and stdout of a program that we start, or streamable HTTP.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp
import mcp_types
import msgspec
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

from dragoman.config.tools import McpServer
from dragoman.tools.definition import Context, ToolDefinition, ToolOutput
from dragoman.tools.errors import ToolFailed
from dragoman.tools.mcp.convert import convert_result, convert_tool
from dragoman.tools.mcp.servers import McpTiming, ToolsChanged
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


_MAX_PAGES = 100
# Error codes of a lost connection. Over HTTP a restarted server rejects the old session as an invalid request.
_LOST_CODES = {mcp_types.CONNECTION_CLOSED, mcp_types.INVALID_REQUEST}


class McpConnection:
    """A supervised connection: `run()` it in its own task and end it with `stop()`.

    `settled()` waits until the first attempt to connect has succeeded or failed. `problem` describes what is wrong
    at the moment, and is empty while the server is connected.
    """

    def __init__(
        self,
        name: str,
        server: McpServer,
        cwd: Path,
        timing: McpTiming,
        on_change: ToolsChanged | None = None,
    ) -> None:
        self.name = name
        self.definitions: tuple[ToolDefinition, ...] = ()
        self.problem = ""
        self._server = server
        self._cwd = cwd
        self._timing = timing
        self._on_change = on_change
        self._client: mcp.Client | None = None
        self._tried = asyncio.Event()
        self._ready = asyncio.Event()
        self._wake = asyncio.Event()
        self._lost = False
        self._scope = anyio.CancelScope()

    async def run(self) -> None:
        """Connect and serve until stopped; reconnect with exponential backoff when the connection ends."""
        pause_s = self._timing.first_pause_s
        with self._scope:
            while True:
                began_s = anyio.current_time()
                await self._run_once()
                if anyio.current_time() - began_s >= self._timing.settled_s:
                    pause_s = self._timing.first_pause_s
                await anyio.sleep(pause_s)
                pause_s = min(pause_s * 2, self._timing.longest_pause_s)

    def stop(self) -> None:
        self._scope.cancel()

    async def wait_for_first_attempt(self) -> None:
        await self._tried.wait()

    async def call(self, tool: str, args: dict[str, Any], context: Context) -> ToolOutput:
        """Call a tool; raise `ToolFailed` if the server reports an error, dies or is not running.

        A call is never retried, because a server that died may already have performed it.
        """
        client = await self._connected()

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            share = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
            context.progress(f"{message} ({share})" if message else share)

        try:
            return convert_result(await client.call_tool(tool, args, progress_callback=tell))
        except mcp.MCPError as error:
            if error.code not in _LOST_CODES or (
                error.code == mcp_types.INVALID_REQUEST and not self._server.url
            ):
                raise ToolFailed(f"{self.name}: {error.message}") from None
            self._mark_lost(client)
            reason = f"the MCP server {self.name} went away while {tool} ran; it is being restarted"
            raise ToolFailed(reason) from None
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._mark_lost(client)
            raise ToolFailed(f"the MCP server {self.name} is gone; it is being restarted") from None
        except (RuntimeError, ValueError) as error:
            # The SDK raises these for a response that is no result, or does not match the tool's output schema.
            raise ToolFailed(f"the MCP server {self.name} answered wrongly: {error}") from None

    async def _connected(self) -> mcp.Client:
        try:
            async with asyncio.timeout(self._timing.wait_s):
                while self._client is None:
                    await self._ready.wait()
        except TimeoutError:
            why = f": {self.problem}" if self.problem else ""
            raise ToolFailed(f"the MCP server {self.name} is not running{why}") from None
        return self._client

    def _mark_lost(self, client: mcp.Client) -> None:
        if self._client is client:
            self._end()

    def _end(self) -> None:
        """Mark the connection as lost and wake the task that owns it."""
        self._client = None
        self._ready.clear()
        self._lost = True
        self._wake.set()

    async def _run_once(self) -> None:
        """Run one connection until it ends, and set `problem` to the reason."""
        self._lost = False
        stderr = StderrReader()
        scope = anyio.CancelScope(deadline=anyio.current_time() + self._timing.start_s)
        try:
            with scope:
                async with self._open(stderr) as client:
                    await self._list_tools(client)
                    scope.deadline = math.inf
                    self._client, self.problem = client, ""
                    self._ready.set()
                    self._tried.set()
                    await self._serve(client)
            self.problem = (
                f"it did not start within {self._timing.start_s:g} s"
                if scope.cancelled_caught
                else "it ended"
            )
        except Exception as error:
            self.problem = _describe(error)
        finally:
            self._end()
            if stderr.tail:
                self.problem += f"; its last words: {stderr.tail}"
            self._tried.set()

    def _open(self, stderr: StderrReader) -> mcp.Client:
        return mcp.Client(
            open_streams(self._server, self._cwd, stderr, on_end=self._end),
            client_info=mcp_types.Implementation(name="dragoman", version="1"),
            message_handler=self._on_message,
            cache=None,
        )

    async def _on_message(self, message: object) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            self._wake.set()

    async def _serve(self, client: mcp.Client) -> None:
        """Wait until the connection is lost; list the tools again whenever they have changed."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._listen, client)
            while not self._lost:
                await self._wake.wait()
                self._wake.clear()
                if not self._lost:
                    await self._list_tools(client)
            group.cancel_scope.cancel()

    async def _listen(self, client: mcp.Client) -> None:
        """Subscribe to changes of the tool list: servers of the newest protocol report them only to subscribers."""
        try:
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._wake.set()
        except (ListenNotSupportedError, SubscriptionLost, mcp.MCPError):
            return

    async def _list_tools(self, client: mcp.Client) -> None:
        tools: list[mcp_types.Tool] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = await client.list_tools(cursor=cursor)
            tools += page.tools
            cursor = page.next_cursor
            if not cursor:
                break
        found = (convert_tool(self.name, tool, self._executor(tool.name), self._server) for tool in tools)
        definitions = tuple({one.name: one for one in found if one is not None}.values())
        if _declared(definitions) == _declared(self.definitions):
            return
        self.definitions = definitions
        if self._on_change is not None:
            self._on_change(self.name, definitions)

    def _executor(self, tool: str) -> Callable[[dict[str, Any], Context], Any]:
        async def execute(args: dict[str, Any], context: Context) -> ToolOutput:
            return await self.call(tool, args, context)

        return execute


def _declared(definitions: tuple[ToolDefinition, ...]) -> list[ToolDefinition]:
    return [msgspec.structs.replace(one, execute=None) for one in definitions]


def _describe(error: BaseException) -> str:
    """Describe the innermost exception; task groups wrap it in exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    words = str(error)
    return words or type(error).__name__
