"""The HTTP/1.1 client of the load generator: one keep-alive connection, one request at a time, with times."""

from __future__ import annotations

import asyncio
import re
from time import perf_counter
from typing import cast

import msgspec

from benchmarks.request_encoders import HEADERS, PATHS, Style

GATEWAY_KEY = "bench-gateway-key"

_HEADERS = (
    "host: 127.0.0.1\r\n"
    "content-type: application/json\r\n"
    "accept: application/json\r\n"
    "accept-encoding: identity\r\n"
)
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
_LAST = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)
_CHUNKS_END = b"\r\n0\r\n\r\n"


class HttpAnswer(msgspec.Struct, frozen=True):
    """`reads` counts the reads of the response; times start with the first byte sent."""

    status: int
    body: bytes
    first_byte_s: float
    total_s: float
    reads: int


def build_post(style: Style, body: bytes, *, stream: bool, headers: str = "") -> bytes:
    """`headers` replace the header with the gateway key."""
    own = headers or f"authorization: Bearer {GATEWAY_KEY}\r\n"
    head = f"POST {PATHS[style][stream]} HTTP/1.1\r\n{_HEADERS}{HEADERS[style]}{own}"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


class Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self._transport: asyncio.Transport
        self._pieces: list[bytes] = []
        self._size = 0
        self._whole_size = -1  # not known yet; 0: chunked
        self._sent = self._first = 0.0
        self._answer: asyncio.Future[HttpAnswer] | None = None
        self.closed = False  # or will be after this answer: the next question needs another one

    async def ask(self, request: bytes) -> HttpAnswer:
        self._pieces, self._size, self._whole_size = [], 0, -1
        self._answer = asyncio.get_running_loop().create_future()
        self._sent = perf_counter()
        self._transport.write(request)
        return await self._answer

    def close(self) -> None:
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop\'s are no subclasses

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self._fail(exc or ConnectionError("the server closed the connection"))

    def _fail(self, error: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)

    def data_received(self, data: bytes) -> None:
        if not self._pieces:
            self._first = perf_counter()
        self._pieces.append(data)
        self._size += len(data)
        if self._whole_size < 0:
            self._read_head()
        if self._complete(data):
            self._finish()

    def _read_head(self) -> None:
        head, found, _ = b"".join(self._pieces).partition(b"\r\n\r\n")
        if not found:
            return
        self.closed = _LAST.search(head) is not None
        length = _LENGTH.search(head)
        self._whole_size = len(head) + 4 + int(length[1]) if length else 0
        if not length and not _CHUNKED.search(head):
            self._fail(ValueError(f"an answer without an end: {head!r}"))

    def _complete(self, data: bytes) -> bool:
        if self._whole_size > 0:
            return self._size >= self._whole_size
        if self._whole_size < 0:
            return False
        if len(data) < len(_CHUNKS_END) and len(self._pieces) > 1:
            data = self._pieces[-2][-len(_CHUNKS_END) :] + data
        return data.endswith(_CHUNKS_END)

    def _finish(self) -> None:
        now = perf_counter()
        head, _, body = b"".join(self._pieces).partition(b"\r\n\r\n")
        answer = HttpAnswer(
            status=int(head.split(b" ", 2)[1]),
            body=body if self._whole_size else _join_chunks(body),
            first_byte_s=self._first - self._sent,
            total_s=now - self._sent,
            reads=len(self._pieces),
        )
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)


def _join_chunks(body: bytes) -> bytes:
    pieces: list[bytes] = []
    place = 0
    while True:
        end = body.index(b"\r\n", place)
        size = int(body[place:end], 16)
        if not size:
            return b"".join(pieces)
        pieces.append(body[end + 2 : end + 2 + size])
        place = end + size + 4


async def connect(host: str, port: int) -> Connection:
    _, connection = await asyncio.get_running_loop().create_connection(Connection, host, port)
    return connection
