"""A client so plain that it can do what no library would: leave, half-close, stall, and tell a cut from an end."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import Any

import msgspec

_CONNECTED_S = 10.0


def reset(writer: asyncio.StreamWriter) -> None:
    """The connection is gone at once, with an RST instead of a goodbye."""
    bare: Any = writer.get_extra_info("socket")
    bare.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class Ask(msgspec.Struct, frozen=True):
    path: str
    body: Any
    headers: dict[str, str] = {}


class Heard(msgspec.Struct, kw_only=True):
    """`whole`: HTTP said that this was all; else the connection ended before that."""

    status: int = 0
    headers: dict[str, str] = {}
    body: bytes = b""
    whole: bool = False


class Client:
    """One request on a connection of its own."""

    def __init__(self, port: int, headers: dict[str, str]) -> None:
        self._port = port
        self._headers = headers
        self._writer: asyncio.StreamWriter | None = None
        self._reading = asyncio.Event()
        self._reading.set()
        self.left = False
        self.heard = Heard()

    async def ask(self, ask: Ask) -> Heard:
        heard = self.heard
        try:
            async with asyncio.timeout(_CONNECTED_S):
                reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 16)
            self._writer.write(self._request(ask))
            await self._writer.drain()
            await self._hear(reader, heard)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            if self._writer is not None:
                self._writer.close()
        return heard

    def _request(self, ask: Ask) -> bytes:
        body = json.dumps(ask.body).encode()
        given = {"content-type": "application/json", **self._headers, **ask.headers}
        given |= {"host": "127.0.0.1", "content-length": str(len(body)), "connection": "close"}
        lines = (f"{name}: {value}" for name, value in given.items())
        return "\r\n".join((f"POST {ask.path} HTTP/1.1", *lines, "", "")).encode() + body

    async def _hear(self, reader: asyncio.StreamReader, heard: Heard) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        heard.status = int(head[0].split()[1])
        heard.headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:]) if name
        }
        if "content-length" in heard.headers:
            heard.body = await reader.readexactly(int(heard.headers["content-length"]))
            heard.whole = True
            return
        assert heard.headers["transfer-encoding"] == "chunked"
        while True:
            await self._reading.wait()
            size = int(await reader.readuntil(b"\r\n"), 16)
            piece = await reader.readexactly(size + 2)
            if not size:
                break
            heard.body += piece[:-2]
        heard.whole = True

    @property
    def port(self) -> int:
        assert self._writer is not None
        return int(self._writer.get_extra_info("sockname")[1])

    def leave(self) -> None:
        self.left = True
        if self._writer is not None:
            self._writer.close()

    def reset(self) -> None:
        self.left = True
        if self._writer is not None:
            reset(self._writer)

    def half_close(self) -> None:
        if self._writer is not None:
            self._writer.write_eof()

    def stall(self) -> None:
        self._reading.clear()

    def read_on(self) -> None:
        self._reading.set()
