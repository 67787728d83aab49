"""Events through the stream machine and through the collector, as a client puts them together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from dragoman.dialects import anthropic
from dragoman.dialects.base import Answer
from dragoman.http.sse import SseDecoder
from dragoman.ir import Event
from tests.corpus import check
from tests.unit.dialects import stream_checks as shared

Json = dict[str, Any]


def answer(*, with_thinking: bool = True) -> Answer:
    return Answer(id="msg_1", model="claude-x", input_tokens=7, with_thinking=with_thinking)


def stream_bytes(events: Sequence[Event], *, with_thinking: bool = True) -> bytes:
    return shared.streamed_bytes(anthropic, events, answer(with_thinking=with_thinking))


def parse(data: bytes) -> list[Json]:
    decoder = SseDecoder()
    events = decoder.feed(data) + decoder.close()
    return [{"event": event.event, "data": json.loads(event.data)} for event in events]


def assembled(data: bytes) -> Json:
    """The message a client makes of a stream; every break of the grammar is an error."""
    message, problems = check.assemble_anthropic(parse(data))
    assert problems == []
    assert check.anthropic_message_problems(message) == []
    return dict(message)


def streamed(events: Sequence[Event], *, with_thinking: bool = True) -> Json:
    return assembled(stream_bytes(events, with_thinking=with_thinking))


def whole(events: Sequence[Event], *, with_thinking: bool = True) -> Json:
    data = shared.whole_bytes(anthropic, events, answer(with_thinking=with_thinking))
    message: Json = json.loads(data)
    assert check.anthropic_message_problems(message) == []
    return message


def thought(words: str, signature: str = "") -> Json:
    return {"type": "thinking", "thinking": words, "signature": signature}


def said(words: str) -> Json:
    return {"type": "text", "text": words}


def used(identity: str, **args: Any) -> Json:
    return {"type": "tool_use", "id": identity, "name": "Read", "input": args or {"a": 1}}
