"""A Google that plays the scene for many conversations at once, each told apart by the name of its model."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable

from tests.chaos import scripted_turns
from tests.chaos.raw_client import Client, reset
from tests.chaos.scripted_turns import Phase, Said
from tests.faults.harness import Arrived, FakeGoogle

_MODEL = re.compile(r"/models/([^:/]+):")
_SSE = "text/event-stream"
_JSON = "application/json; charset=UTF-8"


class Moment:
    """What a fault has in its hands when it strikes."""

    def __init__(self, play: Play, phase: Phase, writer: asyncio.StreamWriter, *, stream: bool) -> None:
        self.play = play
        self.phase = phase
        self.stream = stream
        self.writer = writer
        self.has_head = phase not in ("before headers", "between turns")
        self.rest: list[bytes] = []  # what Google has still to say

    async def head(self, status: int = 200, content_type: str = "", *lines: str) -> None:
        """Status and headers, once; the body comes in HTTP's own chunks."""
        if self.has_head:
            return
        self.has_head = True
        kind = content_type or (_SSE if self.stream else _JSON)
        own = (f"HTTP/1.1 {status} X", f"content-type: {kind}", "transfer-encoding: chunked")
        self.writer.write("\r\n".join((*own, *lines, "", "")).encode())
        await self.writer.drain()

    async def say(self, piece: bytes) -> None:
        await self.head()
        self.writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        await self.writer.drain()

    async def end(self) -> None:
        await self.head()
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    async def finish(self) -> None:
        """Everything that is left, as if nothing had happened."""
        while self.rest:
            await self.say(self.rest.pop(0))
        await self.end()

    def cut(self) -> None:
        self.writer.close()

    def reset(self) -> None:
        reset(self.writer)

    async def heard(self) -> None:
        """Until the client has everything that was said so far; of a whole answer it gets nothing before the end."""
        said = scripted_turns.said_before(self.phase)
        judged = -1  # so many bytes; to judge them is much more work than to wait
        while self.stream:
            heard = len(self.play.client.heard.body)
            if heard != judged and self.play.listen() == said:
                return
            judged = heard
            await asyncio.sleep(0.005)

    @property
    def peer(self) -> int:
        """The port of whoever asked."""
        return int(self.writer.get_extra_info("peername")[1])


#: Does its worst; the answer goes on behind it unless it says that it was the end.
Strike = Callable[[Moment], Awaitable["bool | None"]]
OVER = True


async def nothing(_moment: Moment) -> None:
    """No fault at all."""


class Play:
    """One conversation: at `phase` the fault strikes, `times` times."""

    def __init__(self, phase: Phase, strike: Strike, *, times: int = 1) -> None:
        self._phase = phase
        self._strike = strike
        self._left = times
        self._idle = asyncio.Event()
        self.arrived: list[Arrived] = []
        self.client: Client = Client(0, {})  # who waits for the answer
        self.listen: Callable[[], Said] = lambda: ("", [])  # what the client has of it

    def over(self) -> None:
        self._left = 0

    async def answer(self, arrived: Arrived, writer: asyncio.StreamWriter) -> None:
        self._idle.clear()
        try:
            await self._answer(arrived, writer)
        finally:
            self._idle.set()

    async def nobody_waits(self) -> None:
        """Until whoever asked has hung up."""
        await self._idle.wait()

    async def _answer(self, arrived: Arrived, writer: asyncio.StreamWriter) -> None:
        stream = ":streamGenerateContent" in arrived.path
        second = scripted_turns.is_second_turn(arrived.body)
        moment = Moment(self, "between turns" if second else "before headers", writer, stream=stream)
        if second:
            moment.rest = [*scripted_turns.LAST_STREAMED] if stream else [scripted_turns.LAST_WHOLE]
            if not await self._is_over(moment):
                await moment.finish()
            return
        parts = scripted_turns.STREAMED if stream else scripted_turns.WHOLE
        moment.rest = [piece for phase in parts for piece in parts[phase]]
        for phase, pieces in parts.items():
            moment.phase = phase
            if await self._is_over(moment):
                return
            await moment.head()
            for _ in pieces:
                await moment.say(moment.rest.pop(0))
        await moment.end()

    async def _is_over(self, moment: Moment) -> bool:
        if moment.phase != self._phase or not self._left:
            return False
        self._left -= 1
        return await self._strike(moment) is OVER


class Stage(FakeGoogle):
    def __init__(self) -> None:
        super().__init__()
        self._plays: dict[str, Play] = {}
        self._open: set[asyncio.StreamWriter] = set()
        self.answers = 0  # on their way
        self.mistakes: list[Exception] = []  # of the test itself

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            await super().serve(reader, writer)
        finally:
            self._open.discard(writer)

    def hang_up(self) -> None:
        """On connections that wait for the next request, too."""
        for writer in self._open:
            writer.close()

    def put_on(self, model: str, play: Play) -> None:
        self._plays[model] = play

    def take_off(self, model: str) -> None:
        """Whoever still waits for an answer gets it."""
        del self._plays[model]
        self.arrived.clear()

    def answer_to(self, arrived: Arrived) -> Callable[[asyncio.StreamWriter], Awaitable[None]]:
        found = _MODEL.search(arrived.path)
        play = self._plays[found[1]] if found else None
        assert play is not None, arrived.path
        play.arrived.append(arrived)

        async def act(writer: asyncio.StreamWriter) -> None:
            self.answers += 1
            try:
                await play.answer(arrived, writer)
            except ConnectionError:
                raise
            except Exception as mistake:
                self.mistakes.append(mistake)
                raise
            finally:
                self.answers -= 1

        return act
