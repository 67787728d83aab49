"""The HTTP server: granian, embedded in the event loop of this process.

Granian parses HTTP/1.1 and HTTP/2 (hyper, in Rust, on a thread of its own) and calls the ASGI application in our
loop. Its multi-process server is not used: it has no drain phase, does not report when a worker is ready, and would
not pass on the options of our listening socket (docs/decisions/0010-workers.md, 0011-http-server.md).

Granian has no timeout for a connection that sends nothing and none for an idle HTTP/2 connection; either would occupy a
slot of `server.max_connections`. `IdleConnectionSweeper` closes them: the kernel knows how long a connection has been
silent (TCP_INFO, see tcp(7)). Linux only.
"""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import struct
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress

import msgspec
from granian.constants import Interfaces
from granian.http import HTTP1Settings, HTTP2Settings
from granian.net import SocketHolder  # type: ignore[attr-defined]
from granian.server.embed import Server

from dragoman.config import ServerConfig
from dragoman.gateway.asgi import AsgiApp, Receive, Scope, Send

_INTERVAL_S, _FULL_INTERVAL_S = 1.0, 0.1  # between two sweeps; the second one while all slots are taken
_MAX_LOAD, _FULL_MAX_LOAD = 0.01, 0.1  # sweep less often if sweeps take more than this share of the CPU
_FREE_SHARE = 16  # when all slots are taken, free one in so many
_BETWEEN_REQUESTS_MS = 1000  # a client that was active later than this may be about to send its next request
_TCP_INFO_BYTES = 104
_LAST_DATA_SENT, _LAST_DATA_RECEIVED = 44, 52  # offsets in struct tcp_info, in milliseconds


class _Connection(msgspec.Struct, frozen=True):
    fd: int
    peer_port: int
    idle_ms: int


class IdleConnectionSweeper:
    """Sweep the connections accepted on `port` of this process.

    `busy_ports` returns the peer ports of connections that have a request running. Only ports are compared: a
    coincidence keeps a connection open, and address notations do not matter.
    """

    def __init__(self, port: int, settings: ServerConfig, busy_ports: Callable[[], Collection[int]]) -> None:
        self._port = port
        self._settings = settings
        self._busy_ports = busy_ports
        self._unused_since: dict[int, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        if hasattr(socket, "TCP_INFO") and os.path.isdir("/proc/self/fd"):
            self._schedule(_INTERVAL_S)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def shut_down(self, peer_port: int) -> None:
        """Close the connection of an abusive client, whatever it is doing."""
        for connection in _accepted_connections(self._port):
            if connection.peer_port == peer_port:
                _shut_down(connection, self._port)

    def _schedule(self, delay_s: float) -> None:
        delay_s = min(delay_s, self._settings.keep_alive_s / 2)
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._run)

    def _run(self) -> None:
        began = time.thread_time()
        full = False
        try:
            full = self.sweep(asyncio.get_running_loop().time())
        finally:
            took_s = time.thread_time() - began
            interval_s, load = (_FULL_INTERVAL_S, _FULL_MAX_LOAD) if full else (_INTERVAL_S, _MAX_LOAD)
            self._schedule(max(interval_s, took_s / load))

    def sweep(self, now: float) -> bool:
        """Close what has been idle for too long. Return whether all slots were taken."""
        connections = list(_accepted_connections(self._port))
        busy = self._busy_ports()
        unused = [connection for connection in connections if connection.peer_port not in busy]
        self._unused_since = {
            connection.peer_port: self._unused_since.get(connection.peer_port, now) for connection in unused
        }
        to_close = [
            connection for connection in unused if connection.idle_ms >= self._settings.keep_alive_s * 1000
        ]
        full = len(connections) >= self._settings.max_connections
        if full:
            to_close += self._choose_for_eviction(unused)
        for connection in to_close:
            _shut_down(connection, self._port)
        return full

    def _choose_for_eviction(self, unused: list[_Connection]) -> list[_Connection]:
        """Choose those that have had no request for longest; clients between two requests come last."""

        def order(one: _Connection) -> tuple[bool, float]:
            return one.idle_ms < _BETWEEN_REQUESTS_MS, self._unused_since[one.peer_port]

        return sorted(unused, key=order)[: self._settings.max_connections // _FREE_SHARE + 1]


def _accepted_connections(port: int) -> Iterator[_Connection]:
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            with socket.fromfd(int(name), socket.AF_INET6, socket.SOCK_STREAM) as duplicate:
                if _local_port(duplicate) == port:
                    yield _Connection(int(name), _peer_port(duplicate), _idle_ms(duplicate))


def _shut_down(connection: _Connection, port: int) -> None:
    """Check a duplicate of the descriptor first: the number may belong to another file by now."""
    with (
        suppress(OSError),
        socket.fromfd(connection.fd, socket.AF_INET6, socket.SOCK_STREAM) as duplicate,
    ):
        if (_local_port(duplicate), _peer_port(duplicate)) == (port, connection.peer_port):
            duplicate.shutdown(socket.SHUT_RDWR)


def _local_port(connection: socket.socket) -> int:
    name = connection.getsockname()
    return int(name[1]) if isinstance(name, tuple) else 0


def _peer_port(connection: socket.socket) -> int:
    """Raise OSError for a listening socket."""
    return int(connection.getpeername()[1])


def _idle_ms(connection: socket.socket) -> int:
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
    offsets = (_LAST_DATA_SENT, _LAST_DATA_RECEIVED)
    return min(int(struct.unpack_from("=I", info, offset)[0]) for offset in offsets)


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
        await asyncio.sleep(0)  # requests that are in the queue after this one are counted first
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
