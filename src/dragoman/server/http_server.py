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
from dragoman.server.idle_connections import IdleConnections

_BACKLOG = 1024
_MIN_BUFFER_BYTES = 8 * 1024  # hyper refuses less
_MAX_STREAMS = 128  # of one HTTP/2 connection
_WINDOW_BYTES = 256 * 1024  # of one HTTP/2 stream: how much of a body hyper holds before we read it


class HttpServer:
    """Serve `app` on a bound socket: start -> accepting; stop -> draining -> closed.

    The server takes ownership of the socket.
    """

    def __init__(self, app: AsgiApp, listener: socket.socket, settings: ServerConfig) -> None:
        self._app = app
        self._busy_ports: dict[int, int] = {}
        self._idle = IdleConnections(listener.getsockname()[1], settings, self._busy_ports.keys)
        self._server = _EmbeddedServer(self._serve, listener, settings)
        self._serving: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Listen. Clients can connect when this returns."""
        self._serving = asyncio.get_running_loop().create_task(self._server.serve())
        self._idle.start()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count the requests that run on each connection; HTTP/2 runs several at a time."""
        port, busy = int(scope["client"][1]), self._busy_ports
        busy[port] = busy.get(port, 0) + 1
        try:
            await self._app(scope, receive, send)
        finally:
            busy[port] -= 1
            if not busy[port]:
                del busy[port]

    def stop(self) -> None:
        """Close the listening socket and idle connections. Running requests may finish."""
        self._idle.stop()
        self._server.stop()  # type: ignore[no-untyped-call]

    async def wait_closed(self, timeout_s: float | None = None) -> None:
        """After `stop`: wait until the last connection has ended, or for `timeout_s`."""
        if self._serving is not None:
            await asyncio.wait({self._serving}, timeout=timeout_s)

    async def close(self, timeout_s: float) -> None:
        """Stop, and leave connections that have not ended within `timeout_s` to the end of the process."""
        self.stop()
        await self.wait_closed(timeout_s)


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
