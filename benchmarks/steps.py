"""How many steps of Python (bytecode instructions) the gateway takes for a request: the same on every machine.

Everything of ours takes part, from the bytes of the client's connection to the bytes of Google's; only the sockets are
pipes in memory. C code (msgspec, SQLite, the event loop) is not counted.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import aiohttp
import msgspec
import uvloop
from aiohttp.client_proto import ResponseHandler

from benchmarks import http
from benchmarks.answers import Order, stream_answer, whole_answer
from benchmarks.checks import read_answer
from benchmarks.conversation import AGENT, BIG, SMALL, Conversation, Shape
from benchmarks.wires import Style, encode_request
from dragoman.config import Config, ServerConfig, UpstreamConfig
from dragoman.server.app import GatewayApp
from dragoman.server.gateway import Gateway
from dragoman.server.wire.house import House
from dragoman.server.wire.http1 import Http1Connection
from dragoman.store import open_store

OTHER_STYLES: tuple[Style, ...] = ("openai_chat", "openai_responses", "gemini", "bedrock", "amazonq")
_WARM_UP = 3
_TURNS_BETWEEN = 6  # of the loop, from one chunk to the next
_ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
_SHOWN = 12


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """`chunks` 0 means a whole answer; a conversation that goes `on` has been seen but for its last turn."""

    about: str
    style: Style = "anthropic"
    shape: Shape = AGENT
    on: bool = True
    chunks: int = 0
    requests: int = 12


CASES = (
    Case(about="120 KB, next turn, whole answer"),
    Case(about="1 MB, next turn, whole answer", shape=BIG, requests=4),
    Case(about="120 KB, next turn, 20 chunks", chunks=20),
    Case(about="120 KB, a history never seen, whole answer", on=False, requests=6),
    Case(about="2 KB, 500 chunks one by one", shape=SMALL, on=False, chunks=500, requests=2),
    *(
        Case(about=f"{size}, next turn in {style}, whole answer", style=style, shape=shape, requests=6)
        for style in OTHER_STYLES
        for size, shape in (("120 KB", AGENT), ("1 MB", BIG))
    ),
)


def print_steps() -> None:
    for case in CASES:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as it is served
            steps = runner.run(count_steps(case))
        print(f"{case.about}: {sum(steps.values()) / case.requests:,.0f} steps a request; most of them in")
        for name, count in steps.most_common(_SHOWN):
            print(f"  {count / case.requests:10,.0f}  {name}")


async def count_steps(case: Case) -> Counter[str]:
    """All of them, by file."""
    steps: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as home:
        upstream = UpstreamConfig(base_url="http://127.0.0.1:1", api_key="AIzaBenchmark")
        config = Config(home=home, server=ServerConfig(port=0), upstream=upstream)
        gateway = Gateway(config, open_store(config), keys=(http.GATEWAY_KEY,))
        google = _Google()
        gateway.client._sessions[None] = aiohttp.ClientSession(connector=_Wired(google))
        client = http.Connection()
        _join(client, Http1Connection(House(GatewayApp(gateway), config.server, lambda: None)))
        conversation = Conversation(case.shape, "steps", stream=bool(case.chunks))
        for number in range(_WARM_UP + case.requests):
            if not case.on:
                conversation = Conversation(case.shape, f"steps{number}", stream=bool(case.chunks))
            order = Order(id=f"order{number}", chunks=max(1, case.chunks))
            google.answer = _framed(stream_answer(order)) if case.chunks else [_whole(whole_answer(order))]
            body = encode_request(case.style, conversation.body(order))
            request = http.build_post(case.style, body, stream=bool(case.chunks))
            with _counting(steps) if number >= _WARM_UP else _counting(Counter()):
                answer = await client.ask(request)
                await asyncio.sleep(0)  # what is done when the last byte has left
            conversation.take(read_answer(answer, order, case.style, stream=bool(case.chunks)))
        await gateway.close()
    return steps


@contextmanager
def _counting(steps: Counter[str]) -> Iterator[None]:
    def begin(frame: FrameType, _event: str, _arg: object) -> Callable[..., Any]:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        place = frame.f_code.co_filename.rpartition("/src/dragoman/")[2]

        def step(_frame: FrameType, event: str, _arg: object) -> Callable[..., Any]:
            if event == "opcode":
                steps[place] += 1
            return step

        return step if "/benchmarks/" not in place else _ignore

    before = sys.gettrace()
    sys.settrace(begin)
    try:
        yield
    finally:
        sys.settrace(before)


def _ignore(_frame: FrameType, _event: str, _arg: object) -> None:
    """Of no interest."""


class _Pipe(asyncio.Transport):
    """What one side writes the other gets with the next turn of the loop, in one piece."""

    def __init__(self, owner: asyncio.Protocol, other: asyncio.Protocol) -> None:
        super().__init__()
        self._owner = owner
        self._other = other
        self._loop = asyncio.get_running_loop()

    def write(self, data: Any) -> None:
        self._loop.call_soon(self._other.data_received, data)

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.write(b"".join(list_of_data))

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False

    def abort(self) -> None:
        """Nothing is open."""

    def close(self) -> None:
        self._loop.call_soon(self._owner.connection_lost, None)


def _join(one: asyncio.Protocol, other: asyncio.Protocol) -> None:
    one.connection_made(_Pipe(one, other))
    other.connection_made(_Pipe(other, one))


class _Wired(aiohttp.BaseConnector):
    """A connection pool whose connections all lead to the same Google."""

    def __init__(self, google: _Google) -> None:
        super().__init__(limit=0)
        self._google = google

    async def _create_connection(self, *_args: object) -> ResponseHandler:
        connection = ResponseHandler(asyncio.get_running_loop())
        _join(connection, self._google)
        return connection


class _Google(asyncio.Protocol):
    """Gives its `answer` piece by piece; each has been passed on when the next one comes."""

    answer: list[bytes]
    _pipe: _Pipe

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, _Pipe)
        self._pipe = transport

    def data_received(self, data: bytes) -> None:
        del data
        self._say(0)

    def _say(self, pause: int) -> None:
        if not pause:
            self._pipe.write(self.answer.pop(0))
        if self.answer:
            asyncio.get_running_loop().call_soon(self._say, (pause or _TURNS_BETWEEN) - 1)


def _whole(body: bytes) -> bytes:
    return b"%bcontent-length: %d\r\n\r\n%b" % (_ANSWER, len(body), body)


def _framed(chunks: list[bytes]) -> list[bytes]:
    head = b"%btransfer-encoding: chunked\r\n\r\n" % _ANSWER
    return [head, *(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks), b"0\r\n\r\n"]
