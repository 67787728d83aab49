"""A client sends the same head again and again: its meaning is worked out once, and believed while it may be."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman.config import Config, ServerConfig, UpstreamConfig
from dragoman.dialects.base import Reply
from dragoman.server import errand, routes
from dragoman.server.app import GatewayApp
from dragoman.server.auth import Gate
from dragoman.server.converse import Call
from dragoman.server.gateway import Gateway
from dragoman.server.http import JSON_HEADERS, AsgiLine, Outlet
from dragoman.server.routes import Route, find_route
from dragoman.store import MemoryStore
from tests.unit.server.signing import NOW_S, SECRET, signed
from tests.unit.server.wire.test_http1 import Opened, Reader, Writer, opened, read_answer

KEY, OTHER = SECRET, "dgm-another-key-of-sufficient-length"
BEARER = (("authorization", f"Bearer {KEY}"),)
JSON = (("content-type", "application/json"),)


class Spied:
    """A gateway whose handler tells what it was given, and whose gate counts how often it is asked."""

    def __init__(self, app: GatewayApp, gateway: Gateway, here: Opened, asked: list[Any]) -> None:
        self.app = app
        self.gateway = gateway
        self.here = here
        self.asked = asked  # of the gate
        self._line: tuple[Reader, Writer] | None = None

    async def say(
        self, body: bytes, *headers: tuple[str, str], path: str = "/v1/messages", length: int = -1
    ) -> tuple[int, Any]:
        """On one and the same connection."""
        if self._line is None:
            self._line = await self.here.connect()
        reader, writer = self._line
        named = (
            ("host", "127.0.0.1"),
            *headers,
            ("content-length", str(len(body) if length < 0 else length)),
        )
        head = "".join(f"{name}: {value}\r\n" for name, value in named)
        writer.write(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + body)
        said, told = await read_answer(reader)
        return int(said.split()[1]), json.loads(told)

    def call_again(self) -> None:
        """On another connection."""
        self._line = None


@asynccontextmanager
async def spied(monkeypatch: pytest.MonkeyPatch, **server: Any) -> AsyncIterator[Spied]:
    async def tell(call: Call, outlet: Outlet) -> None:
        told = {
            "headers": dict(call.headers),
            "query": dict(call.query),
            "body": call.body.decode(),
            "caller": call.caller.scope,
        }
        await outlet.reply(Reply(200, json.dumps(told).encode(), JSON_HEADERS))

    asked: list[Any] = []
    admit = Gate.admit

    def spy(self: Gate, headers: Any, query: Any, now_s: float) -> Any:
        asked.append(headers)
        return admit(self, headers, query, now_s)

    monkeypatch.setattr(Gate, "admit", spy)
    monkeypatch.setitem(routes._EXACT, ("POST", "/v1/messages"), Route(tell, "anthropic"))
    config = Config(server=ServerConfig(**server), upstream=UpstreamConfig(api_key="AIza-the-gateways-own"))
    gateway = Gateway(config, MemoryStore(), keys=(KEY, OTHER))
    app = GatewayApp(gateway)
    async with opened(app, **server) as here:
        yield Spied(app, gateway, here, asked)
    await gateway.close()


async def test_a_head_that_comes_again_is_understood_once_and_every_body_is_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads: list[Any] = []

    def read(scope: Any, watch: Any) -> Any:
        reads.append(scope)
        return errand.read_errand(scope, watch)

    monkeypatch.setattr("dragoman.server.app.read_errand", read)
    async with spied(monkeypatch) as here:
        told = [await here.say(b"x" * size, *JSON, *BEARER) for size in (5, 7, 12, 0, 5)]
        assert (len(here.asked), len(reads)) == (1, 1)
        here.call_again()
        told.append(await here.say(b"xxxxx", *JSON, *BEARER))
        assert (len(here.asked), len(reads)) == (2, 2)
    assert [status for status, _ in told] == [200] * 6
    assert [len(one["body"]) for _, one in told] == [5, 7, 12, 0, 5, 5]
    first, *others = ({**one, "body": ""} for _, one in told)
    assert others == [first] * 5


async def test_q_nothing_that_opened_the_door_is_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = (("x-api-key", KEY), ("x-goog-api-key", "AIzaSy"), ("x-amz-security-token", "t"), *BEARER)
    async with spied(monkeypatch) as here:
        path = f"/v1/messages?key={KEY}&beta=true"
        for _ in range(2):
            _, told = await here.say(b"{}", *JSON, *secret, ("x-kept", "1"), path=path)
            assert told["headers"] == {"host": "127.0.0.1", "content-type": "application/json", "x-kept": "1"}
            assert told["query"] == {"beta": "true"}
        assert len(here.asked) == 1


async def test_q_another_key_on_the_same_connection_is_another_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with spied(monkeypatch) as here:
        callers = []
        for key in (KEY, OTHER, KEY, "dgm-a-key-that-nobody-knows-at-all", KEY):
            status, told = await here.say(b"{}", *JSON, ("authorization", f"Bearer {key}"))
            callers.append(told["caller"] if status == 200 else status)
        mine, other = here.gateway.gate._keys[0].caller.scope, here.gateway.gate._keys[1].caller.scope
        assert callers == [mine, other, mine, 401, mine]


async def test_q_who_was_refused_is_asked_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async with spied(monkeypatch) as here:
        wrong = ("authorization", "Bearer dgm-a-key-that-nobody-knows-at-all")
        assert [(await here.say(b"{}", *JSON, wrong))[0] for _ in range(3)] == [401] * 3
        assert len(here.asked) == 3


async def test_q_a_key_that_is_taken_back_opens_nothing_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    async with spied(monkeypatch) as here:
        assert (await here.say(b"{}", *JSON, *BEARER))[0] == 200
        here.gateway.gate = Gate((OTHER,), open_to_all=False, allowed_hosts=())
        assert [(await here.say(b"{}", *JSON, *BEARER))[0] for _ in range(2)] == [401] * 2
        here.gateway.gate = Gate((KEY,), open_to_all=False, allowed_hosts=())
        assert (await here.say(b"{}", *JSON, *BEARER))[0] == 200


async def test_q_a_signature_is_looked_at_every_time_and_gets_too_old(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [NOW_S]
    monkeypatch.setattr("dragoman.server.app.time.time", lambda: now[0])
    head = signed(url="http://127.0.0.1/v1/messages", headers=JSON, body=b"{}")
    headers = [
        (name.decode(), value.decode())
        for name, value in head.headers
        if name not in (b"host", b"content-length")
    ]
    async with spied(monkeypatch) as here:
        assert (await here.say(b"{}", *headers))[0] == 200
        assert (await here.say(b"[]", *headers))[0] == 401  # another body than the one that was signed
        now[0] += 3600
        assert (await here.say(b"{}", *headers))[0] == 401
        assert len(here.asked) == 3


async def test_q_where_everybody_may_come_a_bad_signature_is_still_read_anew() -> None:
    gate = Gate((KEY,), open_to_all=True, allowed_hosts=())
    headers = {"authorization": "AWS4-HMAC-SHA256 nonsense", "content-type": "application/json"}
    admitted = gate.admit(headers, {}, NOW_S)
    assert not gate.says_the_same_again(admitted, headers)
    assert gate.says_the_same_again(gate.admit({}, {}, NOW_S), {})


async def test_q_a_body_without_a_type_may_be_empty_and_the_next_one_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The type is that of both heads; whether it matters, the length says."""
    open_door = Gate((), open_to_all=True, allowed_hosts=())
    async with spied(monkeypatch) as here:
        here.gateway.gate = open_door
        statuses = [(await here.say(body))[0] for body in (b"", b"{}", b"")]
    assert statuses == [200, 400, 200]


async def test_j5_the_length_of_the_request_counts_and_not_that_of_the_one_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with spied(monkeypatch, max_body_bytes=100, max_inflight_bytes=160) as here:
        assert (await here.say(b"x" * 10, *JSON, *BEARER))[0] == 200
        assert here.app._bodies.room.left == 160
        status, told = await here.say(b"", *JSON, *BEARER, length=101)
        assert (status, told["error"]["message"]) == (413, "the request body is larger than 100 bytes")
        assert len(here.asked) == 1


async def test_who_comes_again_still_needs_a_place_and_an_open_gateway(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with spied(monkeypatch, max_requests=1) as here:
        assert (await here.say(b"{}", *JSON, *BEARER))[0] == 200
        here.app._places.take("somebody")
        assert (await here.say(b"{}", *JSON, *BEARER))[0] == 529
        here.app._places.leave("somebody")
        here.gateway.closing = True
        assert (await here.say(b"{}", *JSON, *BEARER))[0] == 529
        assert len(here.asked) == 1


def test_a_dialect_that_numbers_its_requests_is_made_for_each_of_them() -> None:
    chat = {"x-amz-target": "AmazonCodeWhispererStreamingService.GenerateAssistantResponse"}
    assert not find_route("POST", "/", chat, {}).lasting
    assert find_route("POST", "/v1/messages", {}, {}).lasting
    assert find_route("POST", "/v1beta/models/gemini-x:generateContent", {}, {}).lasting


async def test_any_server_gets_the_head_of_an_answer_before_its_body() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    line = AsgiLine(send)
    line.start(200, [("x-a", "\xe4")])
    assert sent == []
    await line.give(b"one", more=True)
    await line.give(b"two", more=False)
    assert sent == [
        {"type": "http.response.start", "status": 200, "headers": [(b"x-a", b"\xe4")]},
        {"type": "http.response.body", "body": b"one", "more_body": True},
        {"type": "http.response.body", "body": b"two", "more_body": False},
    ]
