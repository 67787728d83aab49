"""Request bodies on their way in: bounded alone, together and in time, and never read where nobody wants them."""

from __future__ import annotations

import asyncio
import contextlib
import io
from collections.abc import Mapping

from dragoman.config import ServerConfig
from dragoman.errors import DragomanError, NotAllowed
from dragoman.server.http import BodyCut, ClientLeft, Receive
from dragoman.server.places import Hold, Room, Stay

_UNPROVEN_SHARE = 4  # of all the bytes, one part of so many
_UNPROVEN_S = 60.0
_LINGER_S = 30.0
_LINGER = 4  # times the largest body
_LINGERING_SHARE = 4  # one in so many of all connections may be a refused client that is still sending
_RENEWALS = 4  # of the patience with a body, in the time that it lasts
_DIGITS = 20  # of a length


class Intake:
    """One request's body, piece by piece; `whole` once the last piece has arrived."""

    whole = False

    def __init__(self, receive: Receive, headers: Mapping[str, str]) -> None:
        self._receive = receive
        self.declared = _declared(headers)
        self.announced = "expect" in headers  # the client sends nothing before it has seen 100 Continue

    async def next(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.whole = True
            raise BodyCut
        self.whole = not message.get("more_body", False)
        piece: bytes = message.get("body", b"")
        return piece


class Bodies:
    """Reads bodies; what they take is held until their requests are over.

    Those of callers whom we can know only with the body share a part of the room, and must hurry.
    """

    def __init__(self, server: ServerConfig) -> None:
        self._max_body_bytes = min(server.max_body_bytes, server.max_inflight_bytes)
        self._idle_s = server.body_idle_s
        self.room = Room(server.max_inflight_bytes)
        self._unproven = Room(max(server.max_inflight_bytes // _UNPROVEN_SHARE, self._max_body_bytes))
        self._lingering = 0
        self._max_lingering = max(server.max_connections // _LINGERING_SHARE, 1)

    async def read(self, intake: Intake, stay: Stay, *, proven: bool) -> bytes:
        """The whole body, if there is room for it; what was declared is known before anything is read.

        The `stay` is one in our room.
        """
        declared = self._checked(intake.declared or 0)
        if proven:
            stay.more(declared)
            hold = stay if intake.declared is None else None
            return await self._wait(intake, hold)
        try:  # a length that was only declared, by nobody we know, takes no room
            async with asyncio.timeout(_UNPROVEN_S):
                with self._unproven.hold() as unproven:
                    body = await self._wait(intake, unproven)
        except TimeoutError:
            raise NotAllowed(f"the body of a signed request must arrive within {_UNPROVEN_S:.0f} s") from None
        stay.more(len(body))
        return body

    async def _wait(self, intake: Intake, hold: Hold | None) -> bytes:
        """Piece by piece; `hold` is told of every one."""
        body = io.BytesIO()  # not a list: a piece of one byte would take forty in it
        size = 0
        loop = asyncio.get_running_loop()
        renewed = loop.time()
        try:
            async with asyncio.timeout(self._idle_s) as patience:
                while True:
                    piece = await intake.next()
                    size = self._checked(size + len(piece))
                    if hold is not None:
                        hold.more(len(piece))
                    body.write(piece)
                    if intake.whole:
                        break
                    now = loop.time()
                    # Not per piece: that costs more than to read it.
                    if now - renewed > self._idle_s / _RENEWALS:
                        renewed = now
                        patience.reschedule(now + self._idle_s)
        except TimeoutError:
            why = f"nothing of the request body has come for {self._idle_s:g} s"
            raise DragomanError(why, kind="timeout") from None
        return body.getvalue()

    async def discard(self, intake: Intake) -> None:
        """Let a client that was refused send the rest: most look for an answer only after that.

        Otherwise the kernel would answer its next bytes with a reset, and the refusal would be lost. Clients that
        send slowly must not occupy all connections in this way, so the number of those we wait for is limited.
        """
        if intake.announced or self._lingering >= self._max_lingering:
            return
        left = _LINGER * self._max_body_bytes
        self._lingering += 1
        try:
            with contextlib.suppress(TimeoutError, ClientLeft):
                async with asyncio.timeout(_LINGER_S):
                    while not intake.whole and left > 0:
                        left -= len(await intake.next())
        finally:
            self._lingering -= 1

    def _checked(self, size: int) -> int:
        if size > self._max_body_bytes:
            why = f"the request body is larger than {self._max_body_bytes} bytes"
            raise DragomanError(why, kind="too_large")
        return size


def _declared(headers: Mapping[str, str]) -> int | None:
    length = headers.get("content-length", "")
    return int(length) if length.isdecimal() and len(length) < _DIGITS else None
