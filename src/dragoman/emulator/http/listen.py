"""The emulator's HTTP server. It owns its sockets, because faults need them, and starts in milliseconds."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from dragoman.emulator.http.connection import Connection, ServerState
from dragoman.emulator.http.shell import base_url_of
from dragoman.emulator.question import HttpRequest
from dragoman.emulator.wire import HttpResponse

_BACKLOG = 128

OnAccess = Callable[[str], None]


class HttpServer:
    """An HTTP/1.1 server on one port. `on_access` gets a line for each request, without the query."""

    def __init__(
        self,
        answer: Callable[[HttpRequest], HttpResponse],
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        on_access: OnAccess | None = None,
    ) -> None:
        self._state = ServerState(
            handler=answer, refuse_connections=self.refuse_connections, on_access=on_access
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

    def __init__(self, listener: HttpServer) -> None:
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
    answer: Callable[[HttpRequest], HttpResponse], host: str = "127.0.0.1", port: int = 0
) -> Iterator[str]:
    """Run the emulator in a thread while the block runs; yields the base URL."""
    thread = ServerThread(HttpServer(answer, host, port))
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
