"""Listening, accepting and looking after connections."""

from __future__ import annotations

import asyncio
import logging
import socket

from dragoman.config import ServerConfig
from dragoman.server.wire.house import App, House
from dragoman.server.wire.http1 import Http1Connection

_BACKLOG = 1024
_AT_ONCE = 64  # connections accepted in one turn of the loop
_BREATH_S = 0.2  # until we try again when there are no descriptors
_LAST_WORD_S = 0.05  # for requests that are on their way while we stop
_LOOKS = 8  # at every connection, in the shortest time that one may have
_LOOK_S = (0.03, 5.0)
_log = logging.getLogger("dragoman")


class Server:
    """On a socket that is bound already.

    start -> accepting <-> full (those who come wait in the backlog until one leaves) ; stop -> draining -> closed
    """

    def __init__(self, app: App, listener: socket.socket, settings: ServerConfig) -> None:
        self._listener: socket.socket | None = listener
        self._settings = settings
        self._house = House(app, settings, self._guest_left)
        self._greetings: set[asyncio.Task[object]] = set()
        self._accepting = False
        self._short = False  # of descriptors
        self._looking: asyncio.TimerHandle | None = None
        least = min(settings.keep_alive_s, settings.reader_idle_s)
        self._look_s = max(_LOOK_S[0], min(least / _LOOKS, _LOOK_S[1]))
        self._empty = asyncio.Event()

    def start(self) -> None:
        if self._listener is None:
            raise RuntimeError("a server starts once")
        self._listener.setblocking(False)
        self._listener.listen(_BACKLOG)
        self._accept_again()

    def stop(self) -> None:
        """No new connections; answers that run may finish."""
        if self._house.draining:
            return
        self._house.draining = True
        self._pause_accepting()
        if self._listener is not None:
            self._accept_all(self._listener, _BACKLOG)  # whom the kernel has let in already
            self._listener.close()
            self._listener = None
        self._house.loop.call_later(_LAST_WORD_S, self._drain)

    async def wait_closed(self) -> None:
        """After `stop`: until the last connection has ended."""
        await self._empty.wait()

    async def abort(self) -> None:
        """Nothing is left when this returns."""
        self.stop()
        self._drain()
        while self._greetings or self._house.guests:
            for guest in [*self._house.guests]:
                guest.abort()
            await asyncio.sleep(0)
        tasks = [*self._house.tasks]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._looking is not None:
            self._looking.cancel()

    @property
    def _is_full(self) -> bool:
        return len(self._house.guests) + len(self._greetings) >= self._settings.max_connections

    def _accept_again(self) -> None:
        if self._listener is not None and not self._accepting:
            self._accepting = True
            self._house.loop.add_reader(self._listener.fileno(), self._accept_all, self._listener)

    def _pause_accepting(self) -> None:
        if self._accepting and self._listener is not None:
            self._accepting = False
            self._house.loop.remove_reader(self._listener.fileno())

    def _accept_all(self, listener: socket.socket, most: int = _AT_ONCE) -> None:
        for number in range(most):
            if self._is_full:
                if not number and not self._house.draining:  # so somebody waits
                    self._pause_accepting()
                    self._house.make_room()
                return
            try:
                accepted, _ = listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionError:  # gone again
                continue
            except (
                OSError
            ) as error:  # out of descriptors or memory: it would be tried again at once, for ever
                if not self._short:
                    _log.warning("connections cannot be accepted: %s", error.strerror)
                self._short = True
                self._pause_accepting()
                self._house.loop.call_later(_BREATH_S, self._accept_again)
                return
            self._short = False
            self._greet(accepted)

    def _greet(self, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        house = self._house
        if self._looking is None:
            house.now = house.loop.time()
            self._looking = house.loop.call_later(self._look_s, self._look)
        greeting: asyncio.Task[object] = house.loop.create_task(self._connect(accepted))
        self._greetings.add(greeting)
        greeting.add_done_callback(self._greeted)

    async def _connect(self, accepted: socket.socket) -> None:
        try:
            await self._house.loop.connect_accepted_socket(lambda: Http1Connection(self._house), accepted)
        except OSError:
            accepted.close()

    def _greeted(self, greeting: asyncio.Task[object]) -> None:
        self._greetings.discard(greeting)
        self._guest_left()

    def _guest_left(self) -> None:
        if self._house.draining:
            if not self._house.guests and not self._greetings:
                self._empty.set()
        elif not self._accepting and not self._is_full:
            self._accept_again()

    def _drain(self) -> None:
        for guest in [*self._house.guests]:
            guest.drain()
        self._guest_left()

    def _look(self) -> None:
        house = self._house
        house.now = now = house.loop.time()
        guests = [*house.guests]
        # Before anything can go wrong: without looks nobody has an end.
        busy = guests or self._greetings
        self._looking = house.loop.call_later(self._look_s, self._look) if busy else None
        for guest in guests:
            try:
                guest.look(now)
            except Exception:
                _log.exception("a connection could not be looked at")
                guest.abort()
        if not self._short:
            self._accept_again()  # if somebody waits: one who was busy may be idle by now
