"""How many steps of Python (bytecode instructions) the gateway takes for a request: the same on every machine.

The application is called without a socket; Google's answer is there at once. C code (msgspec, SQLite) is not counted.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType, MappingProxyType
from typing import Any

import msgspec

from benchmarks.answers import Order, stream_answer, whole_answer
from benchmarks.checks import read_answer
from benchmarks.conversation import AGENT, BIG, SMALL, Conversation, Shape
from benchmarks.http import GATEWAY_KEY, HttpAnswer
from benchmarks.wires import HEADERS, PATHS, Style
from dragoman.config import Config, ServerConfig, UpstreamConfig
from dragoman.server.app import GatewayApp
from dragoman.server.gateway import Gateway
from dragoman.store import open_store

_STYLE: Style = "anthropic"
_WARM_UP = 3
_SHOWN = 12


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """`chunks` 0 means a whole answer; a conversation that goes `on` has been seen but for its last turn."""

    about: str
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
)


def print_steps() -> None:
    for case in CASES:
        steps = asyncio.run(_count(case))
        print(f"{case.about}: {sum(steps.values()) / case.requests:,.0f} steps a request; most of them in")
        for name, count in steps.most_common(_SHOWN):
            print(f"  {count / case.requests:10,.0f}  {name}")


async def _count(case: Case) -> Counter[str]:
    steps: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as home:
        upstream = UpstreamConfig(base_url="http://127.0.0.1:1", api_key="AIzaBenchmark")
        config = Config(home=home, server=ServerConfig(port=0), upstream=upstream)
        gateway = Gateway(config, open_store(config), keys=(GATEWAY_KEY,))
        google = gateway.client = _Google()  # type: ignore[assignment]
        app = GatewayApp(gateway)
        conversation = Conversation(case.shape, "steps", stream=bool(case.chunks))
        for number in range(_WARM_UP + case.requests):
            if not case.on:
                conversation = Conversation(case.shape, f"steps{number}", stream=bool(case.chunks))
            order = Order(id=f"order{number}", chunks=max(1, case.chunks))
            google.chunks = stream_answer(order) if case.chunks else [whole_answer(order)]
            body = conversation.body(order)
            with _counting(steps) if number >= _WARM_UP else _counting(Counter()):
                answer = await _ask(app, body, stream=bool(case.chunks))
            conversation.take(read_answer(answer, order, _STYLE, stream=bool(case.chunks)))
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


async def _ask(app: GatewayApp, body: bytes, *, stream: bool) -> HttpAnswer:
    path, _, query = PATHS[_STYLE][stream].partition("?")
    lines = f"host: 127.0.0.1\r\ncontent-type: application/json\r\n{HEADERS[_STYLE]}".strip().split("\r\n")
    lines += [f"authorization: Bearer {GATEWAY_KEY}", f"content-length: {len(body)}"]
    pairs = (line.partition(": ") for line in lines)
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, _, value in pairs],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
        "extensions": {"dragoman.leaving": _ignore_leaving},
    }
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    first, *pieces = sent
    return HttpAnswer(first["status"], b"".join(piece["body"] for piece in pieces), 0.0, 0.0, 1)


def _ignore_leaving(callback: object) -> None:
    """This client stays."""


class _Google:
    """Instead of the client that reaches Google: an answer of `chunks`, all of them here."""

    chunks: list[bytes]
    status = 200
    headers: Mapping[str, str] = MappingProxyType({})

    def post(self, *_: object, **__: object) -> _Google:
        return self

    async def __aenter__(self) -> _Google:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def read_some(self) -> bytes:
        return self.chunks.pop(0) if self.chunks else b""

    def hurry(self) -> None:
        return None

    async def close(self) -> None:
        return None
