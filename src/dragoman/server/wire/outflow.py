"""The way out of a connection: whoever writes waits while the client does not take what was written."""

from __future__ import annotations

import asyncio
import socket
import sys

from dragoman.server.wire.house import House

_UNSENT = 0x5411  # SIOCOUTQ: bytes the kernel has taken from us and the other side has not acknowledged

_LEFT = (7, 8)  # TCP_CLOSE, TCP_CLOSE_WAIT


class Outflow(asyncio.Protocol):
    """`is_full` above the transport's high-water mark (64 KB); a client that takes nothing for long is given up."""

    __slots__ = ("_blocked_since", "_seen", "_waiting", "house", "is_full", "transport")

    transport: asyncio.Transport

    def __init__(self, house: House) -> None:
        self.house = house
        self.is_full = False
        self._waiting: list[asyncio.Future[None]] = []
        self._blocked_since = 0.0
        self._seen = -1

    def pause_writing(self) -> None:
        self.is_full = True
        self._blocked_since = self.house.now
        self._seen = -1

    def resume_writing(self) -> None:
        self.is_full = False
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def end_writing(self) -> None:
        """Nobody needs to wait any more."""
        self.resume_writing()

    async def until_taken(self) -> None:
        while self.is_full:
            future = self.house.loop.create_future()
            self._waiting.append(future)
            await future

    def look_at_reader(self, now: float) -> None:
        """Also of one to whom nothing more will be said, until it has taken all of it."""
        if not (self.is_full or self.transport.is_closing()):
            return
        unsent = self._unsent()
        if unsent != self._seen:
            self._seen, self._blocked_since = unsent, now
        elif now - self._blocked_since > self.house.settings.reader_idle_s:
            self.abort()

    def has_left(self) -> bool:
        """Whether the client has hung up, as the kernel knows: we hear of it only while we read."""
        held = self.transport.get_extra_info("socket")
        if held is None or sys.platform != "linux":
            return False
        return held.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] in _LEFT

    def abort(self) -> None:
        self.transport.abort()

    def _unsent(self) -> int:
        """Bytes that the client has not taken, ours and the kernel's: a slow reader takes some of the kernel's first."""
        ours = self.transport.get_write_buffer_size()
        held = self.transport.get_extra_info("socket")
        if held is None or sys.platform != "linux":
            return ours
        import fcntl

        return ours + int.from_bytes(fcntl.ioctl(held.fileno(), _UNSENT, bytes(4)), sys.byteorder)
