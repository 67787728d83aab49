"""What a request needed is freed when it is over, without the collector: that one comes late to a busy gateway.

A circle of references would keep bodies and answers of many requests, and what the caches have long forgotten.
"""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dragoman.dialects import openai_chat, openai_responses
from dragoman.dialects.openai_responses.items import DecodedItem
from dragoman.gateway.request import RequestContext
from dragoman.gateway.response_writer import ResponseWriter
from dragoman.ids import new_id
from dragoman.incremental.lru import SHARED_BYTES, set_shared_limit
from dragoman.ir import Message, Text, ToolCall, ToolResult
from dragoman.translation.exchange import Exchange
from dragoman.translation.repair.fast_path import check_history
from dragoman.translation.repair.hidden_rounds import hidden_places
from dragoman.upstream.client import UpstreamResponse
from tests.faults.harness import HELLO, KEY, FakeGoogle, chunk, gateway, refuses, streams

_ERROR = b'data: {"error": {"code": 400, "message": "no", "status": "INVALID_ARGUMENT"}}\r\n\r\n'
_ENDS: dict[str, Any] = {
    "an answer": streams(HELLO),
    "a refusal": refuses(400),
    "an error inside": streams(chunk({"text": "Hel"}), _ERROR),
    "garbage": streams(chunk({"text": "Hel"}), b"data: {]\r\n\r\n"),
    "a cut": streams(chunk({"text": "Hel"}), cut=True),
}
_ASKED: dict[str, dict[str, Any]] = {
    "/v1/messages": {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}]},
    "/v1/responses": {"input": "hi", "store": False},
    "/v1beta/models/gemini-3-pro:generateContent": {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}]
    },
}


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    set_shared_limit(SHARED_BYTES)


def alive(*kinds: type) -> int:
    return sum(type(one) in kinds for one in gc.get_objects())


@pytest.mark.parametrize("path", _ASKED)
@pytest.mark.parametrize("end", _ENDS)
async def test_nothing_is_left_of_a_request(path: str, end: str) -> None:
    async with gateway(FakeGoogle(_ENDS[end])) as client:
        before = alive(Exchange, RequestContext, ResponseWriter)
        for stream in (True, False):
            more: dict[str, Any] = {} if "v1beta" in path else {"model": "gemini-3-pro", "stream": stream}
            response = await client.post(path, **_ASKED[path], **more)
            await response.read()
        for _ in range(200):  # the server's side of it ends a little later
            if alive(Exchange, RequestContext, ResponseWriter) <= before:
                break
            await asyncio.sleep(0.01)
        assert alive(Exchange, RequestContext, ResponseWriter) == before
    await asyncio.sleep(0)
    assert alive(UpstreamResponse) == 0


async def _leave(url: str, body: bytes, said: bytes) -> None:
    """A client that asks, hears the beginning, and is gone."""
    reader, writer = await asyncio.open_connection(*url.removeprefix("http://").split(":"))
    head = f"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: {KEY}\r\n"
    writer.write(
        f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
    )
    await reader.readuntil(said)
    writer.transport.abort()


async def test_nothing_is_left_of_clients_that_leave() -> None:
    google = FakeGoogle(streams(chunk({"text": "Hel"}), *[chunk({"text": "lo"})] * 100, pause_s=0.1))
    body = _body(max_tokens=9, messages=[{"role": "user", "content": "hi"}], stream=True)
    async with gateway(google) as running:
        before = alive(Exchange, RequestContext, ResponseWriter)
        for _ in range(5):
            await _leave(running.url, body, b"Hel")
        for _ in range(200):
            if alive(Exchange, RequestContext, ResponseWriter) <= before:
                break
            await asyncio.sleep(0.01)
        assert alive(Exchange, RequestContext, ResponseWriter) == before


def _chat(turn: int) -> bytes:
    calls = [
        {"id": f"c{turn}-{n}", "type": "function", "function": {"name": "find", "arguments": "{}"}}
        for n in range(2)
    ]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "here"} for call in calls]
    asked = {"role": "user", "content": f"question {turn}"}
    return _body(messages=[asked, {"role": "assistant", "tool_calls": calls}, *results])


def _responses(turn: int) -> bytes:
    calls = [
        {"type": "function_call", "call_id": f"c{turn}-{n}", "name": "find", "arguments": "{}"}
        for n in range(2)
    ]
    results = [
        {"type": "function_call_output", "call_id": call["call_id"], "output": "here"} for call in calls
    ]
    return _body(input=[{"role": "user", "content": f"question {turn}"}, *calls, *results])


def _body(**more: Any) -> bytes:
    return json.dumps({"model": "gemini-3-pro", **more}).encode()


@pytest.mark.parametrize(("dialect", "body"), [(openai_chat, _chat), (openai_responses, _responses)])
def test_what_a_cache_forgets_is_gone(dialect: Any, body: Callable[[int], bytes]) -> None:
    set_shared_limit(0)
    before = alive(Message, DecodedItem)
    set_shared_limit(SHARED_BYTES)
    for turn in range(50):
        Exchange(dialect, new_id=new_id).decode(body(turn))
    assert alive(Message, DecodedItem) > before + 100
    set_shared_limit(0)
    assert alive(Message, DecodedItem) == before


def test_messages_that_note_what_stood_before_them_hold_nobody() -> None:
    before = alive(Message)
    messages = (
        Message(role="user", parts=(Text(text="Where?"),)),
        Message(role="model", parts=(ToolCall(id="c1", name="find"),)),
        Message(role="user", parts=(ToolResult(call_id="c1", content=(Text(text="here"),)),)),
        Message(role="model", parts=(Text(text="There."),)),
    )
    assert check_history(messages, ends_with_user=False)
    assert hidden_places(messages)
    del messages
    assert alive(Message) == before
