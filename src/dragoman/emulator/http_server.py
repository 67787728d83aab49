"""The emulator's HTTP/1.1 server and its connections.

It owns its sockets, because faults need them: a connection is reset, closed in the middle of a response, or refused.
It starts in milliseconds and can run in a thread of its own.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import unquote

import msgspec

from dragoman.emulator.errors import ApiError, encode_error
from dragoman.emulator.http_messages import (
    CloseConnection,
    ConnectionAction,
    HttpRequest,
    HttpResponse,
    RefuseConnections,
    Wait,
    base_url_of,
    header_fields,
    is_cross_site,
    make_request,
)
from dragoman.emulator.http_request_parser import (
    BadRequest,
    ContinueExpected,
    ParsedHttpRequest,
    ParserEvent,
    RequestParser,
)

_MAX_UNPARSED_BYTES = 64 * 1024  # of pipelined requests; with more, the connection stops reading
_LINGER_S = 2.0  # for a client that still sends a request we have refused
_LINGER_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close at once, with a TCP reset
_CROSS_SITE_ERROR = ApiError(
    "emulator: requests from web pages and for other host names are refused", code=403
)


class ServerState(msgspec.Struct, kw_only=True):
    """What a server and its connections share."""

    handler: Callable[[HttpRequest], HttpResponse]
    refuse_connections: Callable[[float], Awaitable[None]]
    on_access: Callable[[str], None] | None
    connections: set[Connection] = set()


class _Disconnect(Exception):
    """Ends the answer and the connection."""

    def __init__(self, *, reset: bool) -> None:
        super().__init__()
        self.reset = reset


class Connection(asyncio.Protocol):
    """Serves one client. A client that closes its side of the connection still gets its answer, but no waits."""

    def __init__(self, server: ServerState) -> None:
        self._server = server
        self._parser = RequestParser()
        self._readable = asyncio.Event()  # there is new data, or the client has left
        self._client_closed = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._body_ends_with_connection = False  # the end of the connection marks the end of the answer
        self.idle = True
        self._closed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transports are no subclasses
        self._transport.set_write_buffer_limits(high=0)  # `_send` waits until the kernel has taken all bytes
        self._server.connections.add(self)
        self._task = asyncio.get_running_loop().create_task(self._serve())

    def data_received(self, data: bytes) -> None:
        self._parser.receive_data(data)
        if self._parser.unparsed_bytes > _MAX_UNPARSED_BYTES:
            self._transport.pause_reading()
        self._readable.set()

    def eof_received(self) -> bool:
        self._client_closed.set()
        self._readable.set()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._client_closed.set()
        self._readable.set()
        self._writable.set()
        self._closed.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    async def close(self) -> None:
        """Close the connection at once, also in the middle of an answer."""
        self._task.cancel()
        self._transport.abort()
        await asyncio.wait({self._task})
        await self._closed.wait()
        self._server.connections.discard(self)

    async def _serve(self) -> None:
        try:
            while (event := await self._next_event()) is not None and await self._handle_event(event):
                pass
        except _Disconnect as disconnect:
            if disconnect.reset:
                sock = self._transport.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
                self._transport.abort()
        finally:
            self._transport.close()
        await self._closed.wait()
        self._server.connections.discard(self)

    async def _next_event(self) -> ParserEvent | None:
        """None: the client has left."""
        while (event := self._parser.next_event()) is None:
            if self._client_closed.is_set():
                return None
            self._transport.resume_reading()
            self.idle = True
            self._readable.clear()
            await self._readable.wait()
        self.idle = False
        return event

    async def _handle_event(self, event: ParserEvent) -> bool:
        """Whether the connection goes on after this event."""
        if isinstance(event, ContinueExpected):
            await self._send(b"HTTP/1.1 100 Continue\r\n\r\n")
            return True
        if isinstance(event, BadRequest):
            await self._send_bad_request(event)
            return False
        path, query = _split_target(event.target)
        http_request = make_request(event.method, path, query, event.headers, event.body)
        response = (
            encode_error(_CROSS_SITE_ERROR, "whole")
            if is_cross_site(http_request)
            else _call_handler(self._server.handler, http_request)
        )
        if self._server.on_access is not None:
            self._server.on_access(f"{event.method} {path} {response.status}")
        await self._send_response(response, event)
        return event.keep_alive and not self._body_ends_with_connection

    async def _send_response(self, response: HttpResponse, request: ParsedHttpRequest) -> None:
        for action in response.actions_before_head:
            await self._perform(action)
        chunked = response.streamed and request.http_version == "1.1"
        self._body_ends_with_connection = response.streamed and not chunked
        await self._send(
            _encode_head(
                response, chunked, keep_alive=request.keep_alive and not self._body_ends_with_connection
            )
        )
        if request.method == "HEAD":
            return
        for action in response.actions:
            if isinstance(action, bytes):
                await self._send(_encode_chunk(action) if chunked else action)
            else:
                await self._perform(action)
        if chunked:
            await self._send(b"0\r\n\r\n")

    async def _perform(self, action: ConnectionAction) -> None:
        if isinstance(action, bytes):
            await self._send(action)
        elif isinstance(action, Wait):
            await self._wait(action.seconds)
        elif isinstance(action, CloseConnection):
            # Without chunks or a length, only a reset tells the client that the answer is incomplete.
            raise _Disconnect(reset=action.reset or self._body_ends_with_connection)
        else:
            assert isinstance(action, RefuseConnections)  # noqa: S101 (closes the choice)
            await self._server.refuse_connections(action.seconds)
            raise _Disconnect(reset=True)

    async def _wait(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._client_closed.wait(), seconds)
        except TimeoutError:
            return
        raise _Disconnect(reset=False)

    async def _send(self, data: bytes) -> None:
        if data and not self._transport.is_closing():
            self._transport.write(data)
            await self._writable.wait()
        if self._transport.is_closing():
            raise _Disconnect(reset=False)

    async def _send_bad_request(self, bad_request: BadRequest) -> None:
        """Answer, then read on for a moment: a client that is still sending would get a reset instead of the answer."""
        body = f"{bad_request.reason}\n".encode()
        response = HttpResponse(
            status=bad_request.status, content_type="text/plain; charset=utf-8", actions=(body,)
        )
        self._transport.resume_reading()
        await self._send(_encode_head(response, chunked=False, keep_alive=False) + body)
        self._transport.write_eof()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._client_closed.wait(), _LINGER_S)


def _call_handler(handler: Callable[[HttpRequest], HttpResponse], http_request: HttpRequest) -> HttpResponse:
    """The answer of a director, which is the user's code; an exception in it becomes an answer with status 500."""
    try:
        return handler(http_request)
    except Exception as error:
        return encode_error(ApiError(f"emulator: {type(error).__name__}: {error}", code=500), "whole")


def _split_target(target: str) -> tuple[str, str]:
    """Path and query; a client that uses the emulator as its proxy sends the whole URL."""
    address, _, query = target.partition("?")
    if address.startswith(("http://", "https://")):
        address = "/" + address.partition("://")[2].partition("/")[2]
    return unquote(address), query


def _encode_head(response: HttpResponse, chunked: bool, *, keep_alive: bool) -> bytes:
    try:
        phrase = HTTPStatus(response.status).phrase
    except ValueError:
        phrase = ""
    fields = header_fields(response)
    if chunked:
        fields.append(("transfer-encoding", "chunked"))
    fields.append(("connection", "keep-alive" if keep_alive else "close"))
    lines = [f"HTTP/1.1 {response.status} {phrase}", *(f"{name}: {value}" for name, value in fields)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")


def _encode_chunk(data: bytes) -> bytes:
    """No chunk for no data, because an empty chunk ends the message."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


_BACKLOG = 128

OnAccess = Callable[[str], None]


class EmulatorServer:
    """An HTTP/1.1 server on one port. `on_access` gets a line for each request, without the query."""

    def __init__(
        self,
        handler: Callable[[HttpRequest], HttpResponse],
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        on_access: OnAccess | None = None,
    ) -> None:
        self._state = ServerState(
            handler=handler, refuse_connections=self.refuse_connections, on_access=on_access
        )
        self._host = host
        self._port = port
        self._socket: socket.socket | None = None
        self._resume_timer: asyncio.TimerHandle | None = None
        self._accepting: set[asyncio.Task[Any]] = set()

    async def start(self) -> str:
        """Start to listen and return the base URL; raises OSError if the port is not free."""
        self._socket = _bind(self._host, self._port)
        self._port = self._socket.getsockname()[1]
        self._listen(self._socket)
        return base_url_of(self._host, self._port)

    async def refuse_connections(self, seconds: float) -> None:
        """Refuse new connections for this time and close the idle ones."""
        if self._socket is None or self._resume_timer is not None:  # not started, or refusing already
            return
        self._close_socket(self._socket)
        # A socket that is bound but does not listen keeps the port, and the system refuses connections to it.
        self._socket = _bind(self._host, self._port)
        loop = asyncio.get_running_loop()
        self._resume_timer = loop.call_later(seconds, self._listen, self._socket)
        await self._close_connections(lambda connection: connection.idle)

    async def close(self) -> None:
        if self._resume_timer is not None:
            self._resume_timer.cancel()
        if self._socket is not None:
            self._close_socket(self._socket)
            self._socket = None
        await self._close_connections(lambda _: True)

    def _listen(self, sock: socket.socket) -> None:
        self._resume_timer = None
        sock.listen(_BACKLOG)
        asyncio.get_running_loop().add_reader(sock, self._accept, sock)

    def _accept(self, sock: socket.socket) -> None:
        """Not asyncio's server: when it closes, it loses a connection that it has just accepted."""
        try:
            accepted, _ = sock.accept()
        except OSError:  # the client has left already
            return
        accepted.setblocking(False)
        loop = asyncio.get_running_loop()
        task = loop.create_task(loop.connect_accepted_socket(lambda: Connection(self._state), accepted))
        self._accepting.add(task)
        task.add_done_callback(self._accepting.discard)

    def _close_socket(self, sock: socket.socket) -> None:
        asyncio.get_running_loop().remove_reader(sock)
        sock.close()

    async def _close_connections(self, condition: Callable[[Connection], bool]) -> None:
        if self._accepting:
            await asyncio.wait(self._accepting)
        for connection in list(filter(condition, self._state.connections)):
            await connection.close()


class ServerThread:
    """A listener in its own thread with its own event loop."""

    def __init__(self, listener: EmulatorServer) -> None:
        self._listener = listener
        self._started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, str]] = Future()
        self._thread = threading.Thread(target=self._run, name="dragoman-emulator", daemon=True)

    def start(self) -> str:
        """Wait until it listens and return the base URL."""
        self._thread.start()
        try:
            return self._started.result()[2]
        except BaseException:
            self._thread.join()
            raise

    def stop(self) -> None:
        """Close everything and wait for the end of the thread."""
        loop, stopping, _ = self._started.result()
        if self._thread.is_alive():
            loop.call_soon_threadsafe(stopping.set)
            self._thread.join()

    def _run(self) -> None:
        try:
            run_server(self._main())
        except BaseException as error:
            if not self._started.done():
                self._started.set_exception(error)
                return
            raise

    async def _main(self) -> None:
        stopping = asyncio.Event()
        base_url = await self._listener.start()
        self._started.set_result((asyncio.get_running_loop(), stopping, base_url))
        try:
            await stopping.wait()
        finally:
            await self._listener.close()


@contextmanager
def serve_in_thread(
    handler: Callable[[HttpRequest], HttpResponse], host: str = "127.0.0.1", port: int = 0
) -> Iterator[str]:
    """Run the emulator in a thread while the block runs; yields the base URL."""
    thread = ServerThread(EmulatorServer(handler, host, port))
    base_url = thread.start()
    try:
        yield base_url
    finally:
        thread.stop()


def run_server(main: Coroutine[Any, Any, None]) -> None:
    """`asyncio.run` with an event loop that has `add_reader` on every system."""
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        runner.run(main)


def _bind(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock
