"""The emulator's own HTTP server: it owns its sockets, because faults need them, and starts in milliseconds."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from dragoman.emulator.http.connection import Connection, House
from dragoman.emulator.http.shell import write_address
from dragoman.emulator.question import Question
from dragoman.emulator.wire import Answer

_BACKLOG = 128

OnAccess = Callable[[str], None]


class Listener:
    """Answers HTTP/1.1 on one port; `on_access` gets a line per request, without its query."""

    def __init__(
        self,
        answer: Callable[[Question], Answer],
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        on_access: OnAccess | None = None,
    ) -> None:
        self._house = House(answer=answer, refuse=self.refuse, on_access=on_access)
        self._host = host
        self._port = port
        self._socket: socket.socket | None = None
        self._return: asyncio.TimerHandle | None = None
        self._greetings: set[asyncio.Task[Any]] = set()

    async def start(self) -> str:
        """Listen; the base URL. An OSError says why not."""
        self._socket = _bind(self._host, self._port)
        self._port = self._socket.getsockname()[1]
        self._listen(self._socket)
        return write_address(self._host, self._port)

    async def refuse(self, seconds: float) -> None:
        """From now on nobody is at home, and after so many seconds again; connections without work end."""
        if self._socket is None or self._return is not None:  # never there, or away already
            return
        self._close_socket(self._socket)
        # Bound but not listening: the port stays ours, and whoever calls is refused.
        self._socket = _bind(self._host, self._port)
        loop = asyncio.get_running_loop()
        self._return = loop.call_later(seconds, self._listen, self._socket)
        await self._close_connections(lambda connection: connection.idle)

    async def close(self) -> None:
        if self._return is not None:
            self._return.cancel()
        if self._socket is not None:
            self._close_socket(self._socket)
            self._socket = None
        await self._close_connections(lambda _: True)

    def _listen(self, bound: socket.socket) -> None:
        self._return = None
        bound.listen(_BACKLOG)
        asyncio.get_running_loop().add_reader(bound, self._accept, bound)

    def _accept(self, listening: socket.socket) -> None:
        """Not asyncio's server: closing that one loses what it accepted in the same moment."""
        try:
            accepted, _ = listening.accept()
        except OSError:  # the client has gone again
            return
        accepted.setblocking(False)
        loop = asyncio.get_running_loop()
        greeting = loop.create_task(loop.connect_accepted_socket(lambda: Connection(self._house), accepted))
        self._greetings.add(greeting)
        greeting.add_done_callback(self._greetings.discard)

    def _close_socket(self, held: socket.socket) -> None:
        asyncio.get_running_loop().remove_reader(held)
        held.close()

    async def _close_connections(self, chosen: Callable[[Connection], bool]) -> None:
        if self._greetings:
            await asyncio.wait(self._greetings)
        for connection in list(filter(chosen, self._house.connections)):
            await connection.close()


class EmulatorThread:
    """A listener in a thread of its own, with its own event loop."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, str]] = Future()
        self._thread = threading.Thread(target=self._run, name="dragoman-emulator", daemon=True)

    def start(self) -> str:
        """The base URL, once it listens."""
        self._thread.start()
        try:
            return self._started.result()[2]
        except BaseException:
            self._thread.join()
            raise

    def stop(self) -> None:
        """Everything is closed when this returns."""
        loop, stopping, _ = self._started.result()
        if self._thread.is_alive():
            loop.call_soon_threadsafe(stopping.set)
            self._thread.join()

    def _run(self) -> None:
        try:
            run_listener(self._main())
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
def running(answer: Callable[[Question], Answer], host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """The emulator on a port of this machine for as long as the block lasts; gives the base URL."""
    thread = EmulatorThread(Listener(answer, host, port))
    base_url = thread.start()
    try:
        yield base_url
    finally:
        thread.stop()


def run_listener(main: Coroutine[Any, Any, None]) -> None:
    """`asyncio.run` with the loop that can watch sockets on every system."""
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        runner.run(main)


def _bind(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    held = socket.socket(family, kind, protocol)
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(address)
        held.setblocking(False)
    except BaseException:
        held.close()
        raise
    return held
