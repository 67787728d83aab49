"""The HTTP server: granian, embedded in the event loop of this process.

Granian parses HTTP/1.1 and HTTP/2 (hyper, in Rust, on a thread of its own) and calls the ASGI application in our
loop. Its multi-process server is not used: it has no drain phase, does not report when a worker is ready, and would
not pass on the options of our listening socket (docs/decisions/0010-workers.md, 0011-http-server.md).
"""

from __future__ import annotations

import asyncio
import socket

from granian.constants import Interfaces
from granian.http import HTTP1Settings, HTTP2Settings
from granian.net import SocketHolder  # type: ignore[attr-defined]
from granian.server.embed import Server

from dragoman.config import ServerConfig
from dragoman.server.http import AsgiApp, Receive, Scope, Send
from dragoman.server.idle_connections import IdleConnectionSweeper

_BACKLOG = 1024
_MIN_BUFFER_BYTES = 8 * 1024  # hyper refuses less
_MAX_STREAMS = 128  # of one HTTP/2 connection
#: Requests of one connection that have arrived and not ended; only a client that resets its streams has more.
_MAX_UNFINISHED = 2 * _MAX_STREAMS
_MAX_QUEUED = 1000  # requests of HTTP/2 connections that wait for the event loop
_WINDOW_BYTES = 256 * 1024  # of one HTTP/2 stream: how much of a body hyper holds before we read it


class HttpServer:
    """Serve `app` on a bound socket: start -> accepting; stop -> draining -> closed.

    The server takes ownership of the socket.
    """

    def __init__(self, app: AsgiApp, listener: socket.socket, settings: ServerConfig) -> None:
        self._app = app
        self._busy: dict[int, _BusyConnection] = {}  # by the client's port
        self._waiting = 0  # requests that have arrived together with others and have not begun
        self._sweeper = IdleConnectionSweeper(listener.getsockname()[1], settings, self._busy.keys)
        self._server = _EmbeddedServer(self._serve, listener, settings)
        self._serving: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Listen. Clients can connect when this returns."""
        self._serving = asyncio.get_running_loop().create_task(self._server.serve())
        self._sweeper.start()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count the requests that run on each connection; HTTP/2 runs several at a time."""
        port, busy = int(scope["client"][1]), self._busy
        connection = busy.setdefault(port, _BusyConnection())
        connection.requests += 1
        if connection.requests == _MAX_UNFINISHED:
            self._sweeper.shut_down(port)
        try:
            if connection.requests == 1 or await self._is_admitted(connection):
                await self._app(scope, receive, send)
        finally:
            connection.requests -= 1
            if not connection.requests:
                del busy[port]

    async def _is_admitted(self, connection: _BusyConnection) -> bool:
        """When more requests arrive than we can serve, let only one per connection begin; granian answers 500.

        An HTTP/2 client that resets its streams may open new ones at once, while the requests of the old ones are
        still in the queue of the event loop (CVE-2023-44487).
        """
        if self._waiting >= _MAX_QUEUED and connection.waiting:
            return False
        self._waiting += 1
        connection.waiting += 1
        await asyncio.sleep(0)  # requests that are in the queue behind this one are counted first
        self._waiting -= 1
        connection.waiting -= 1
        return True

    def stop(self) -> None:
        """Close the listening socket and idle connections. Running requests may finish."""
        self._sweeper.stop()
        self._server.stop()  # type: ignore[no-untyped-call]

    async def wait_closed(self, timeout_s: float | None = None) -> None:
        """After `stop`: wait until the last connection has ended, or for `timeout_s`."""
        if self._serving is not None:
            await asyncio.wait({self._serving}, timeout=timeout_s)

    async def close(self, timeout_s: float) -> None:
        """Stop, and leave connections that have not ended within `timeout_s` to the end of the process."""
        self.stop()
        await self.wait_closed(timeout_s)


class _BusyConnection:
    """How many requests of one connection have arrived and not ended, and how many of them have not begun."""

    requests = 0
    waiting = 0


class _EmbeddedServer(Server):
    def __init__(self, app: AsgiApp, listener: socket.socket, settings: ServerConfig) -> None:
        buffer_bytes = max(settings.max_header_bytes, _MIN_BUFFER_BYTES)
        super().__init__(
            app,
            interface=Interfaces.ASGINL,  # without lifespan: our own process opens and closes the gateway
            websockets=False,
            log_enabled=False,
            backlog=_BACKLOG,
            backpressure=settings.max_connections,
            http1_settings=HTTP1Settings(
                header_read_timeout=round(settings.keep_alive_s * 1000),  # of an idle connection, too
                max_buffer_size=buffer_bytes,
            ),
            http2_settings=HTTP2Settings(
                max_concurrent_streams=_MAX_STREAMS,
                max_headers_size=buffer_bytes,
                initial_stream_window_size=_WINDOW_BYTES,
                initial_connection_window_size=4 * _WINDOW_BYTES,
                max_send_buffer_size=_WINDOW_BYTES,
            ),
        )
        listener.listen(_BACKLOG)
        self._listener = listener

    def _init_shared_socket(self) -> None:
        """Hand over our own socket instead of binding one: accepted connections inherit its options."""
        self._shd = SocketHolder(self._listener.detach(), False, _BACKLOG)  # type: ignore[assignment,call-arg]
