"""A stretch of network that can be made slow, lost, reset, half-closed or silent, connection by connection."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Literal

import msgspec

from tests.chaos.raw_client import reset

Side = Literal["near", "far"]  # who connected, and who was connected to

_READ_BYTES = 4096


class Weather(msgspec.Struct, frozen=True, kw_only=True):
    """What every connection suffers: a delay per read, up to so much more of it, and so many bytes a second."""

    delay_s: float = 0.0
    jitter_s: float = 0.0
    bytes_per_s: float = 0.0


class Link:
    """One connection through the proxy."""

    def __init__(self, near: asyncio.StreamWriter, far: asyncio.StreamWriter) -> None:
        self._writers: dict[Side, asyncio.StreamWriter] = {"near": near, "far": far}
        self.passing = asyncio.Event()
        self.passing.set()

    def lose(self) -> None:
        self.passing.set()
        for writer in self._writers.values():
            writer.close()

    def reset(self, side: Side) -> None:
        """An RST to one side, a mere end to the other."""
        reset(self._writers[side])
        self.lose()

    def end(self, side: Side) -> None:
        """One side is told that nothing more will come; what it says still passes."""
        self._writers[side].write_eof()

    def freeze(self) -> None:
        """Nothing arrives any more, and nobody is told."""
        self.passing.clear()


class Proxy:
    def __init__(self, port: int, weather: Weather) -> None:
        self._port = port
        self._weather = weather
        self._links: dict[tuple[Side, int], Link] = {}
        self._random = random.Random(1)

    def close(self) -> None:
        for link in self._links.values():
            link.lose()

    def link(self, side: Side, port: int) -> Link:
        """By the port of whoever connected (near), or by the one that whoever was connected to sees (far)."""
        return self._links[side, port]

    async def serve(self, reader: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        try:
            beyond, far = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            near.close()
            return
        link = Link(near, far)
        ends: list[tuple[Side, int]] = [
            ("near", near.get_extra_info("peername")[1]),
            ("far", far.get_extra_info("sockname")[1]),
        ]
        self._links |= dict.fromkeys(ends, link)
        try:
            await asyncio.gather(self._pump(reader, far, link), self._pump(beyond, near, link))
        finally:
            link.lose()
            for end in ends:
                if self._links.get(end) is link:
                    del self._links[end]

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, link: Link) -> None:
        weather = self._weather
        with suppress(ConnectionError):
            while data := await reader.read(_READ_BYTES):
                await link.passing.wait()
                pause_s = weather.delay_s + weather.jitter_s * self._random.random()
                if weather.bytes_per_s:
                    pause_s += len(data) / weather.bytes_per_s
                if pause_s:
                    await asyncio.sleep(pause_s)
                writer.write(data)
                await writer.drain()
        if not link.passing.is_set():  # somebody has given up
            link.lose()
        elif not writer.is_closing():
            with suppress(OSError):
                writer.write_eof()


@asynccontextmanager
async def proxied(port: int, weather: Weather) -> AsyncIterator[tuple[int, Proxy]]:
    """The port of a proxy in front of another port."""
    proxy = Proxy(port, weather)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], proxy
    finally:
        server.close()
