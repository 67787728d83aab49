"""A fake Gemini that uses little CPU: ready-made answers over keep-alive HTTP/1.1.

`python -m benchmarks.fake_gemini` prints its address. `GET /last` gives back the last body it was sent.
"""

from __future__ import annotations

import asyncio
import re
from typing import cast

import uvloop

from benchmarks.fake_answers import AnswerSpec, encode_answer, encode_stream, find_answer_spec
from dragoman.process.tuning import raise_descriptor_limit

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_WHOLE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json; charset=UTF-8\r\ncontent-length: %d\r\n\r\n%b"
_STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_REFUSED = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"
_CHUNK = b"%x\r\n%b\r\n"
_END = b"0\r\n\r\n"
_DESCRIPTORS = 8192
_PER_WRITE = 16  # events a hurried Google puts into one packet


class FakeGemini(asyncio.Protocol):
    """One connection; a request is read completely and answered before the next one."""

    last_body = b""

    def __init__(self) -> None:
        self._head = b""
        self._pieces: list[bytes] = []
        self._missing = 0
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.WriteTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)  # uvloop\'s are no subclasses

    def connection_lost(self, _exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        if not self._missing:
            head, found, data = (b"".join(self._pieces) + data).partition(b"\r\n\r\n")
            if not found:
                self._pieces = [head]
                return
            length = _LENGTH.search(head)
            self._head, self._pieces = head, []
            self._missing = int(length[1]) if length else 0
        self._pieces.append(data)
        self._missing -= len(data)
        if self._missing <= 0:
            body, self._pieces, self._missing = b"".join(self._pieces), [], 0
            self._answer(body)

    def _answer(self, body: bytes) -> None:
        path = self._head.split(b" ", 2)[1]
        if path == b"/last":
            self._transport.write(_WHOLE % (len(FakeGemini.last_body), FakeGemini.last_body))
            return
        FakeGemini.last_body = body
        order = find_answer_spec(body)
        if order is None:
            self._transport.write(_REFUSED)
        elif b":streamGenerateContent" in path:
            self._stream(order)
        else:
            whole = encode_answer(order)
            self._transport.write(_WHOLE % (len(whole), whole))

    def _stream(self, order: AnswerSpec) -> None:
        self._transport.write(_STREAM)
        events = [_CHUNK % (len(event), event) for event in encode_stream(order)]
        events[-1] += _END
        if order.pace_ms:
            self._pace(events, 0, order.pace_ms / 1000)
            return
        for start in range(0, len(events), _PER_WRITE):
            self._transport.write(b"".join(events[start : start + _PER_WRITE]))

    def _pace(self, events: list[bytes], index: int, pace_s: float) -> None:
        self._transport.write(events[index])
        if index + 1 < len(events):
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(pace_s, self._pace, events, index + 1, pace_s)


async def main() -> None:
    raise_descriptor_limit(_DESCRIPTORS)
    server = await asyncio.get_running_loop().create_server(FakeGemini, "127.0.0.1", 0, backlog=1024)
    host, port = server.sockets[0].getsockname()
    print(f"ready http://{host}:{port}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
