"""Events through the stream machine and through the collector, as a client puts them together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from dragoman.dialects import anthropic
from dragoman.dialects.base import Answer
from dragoman.ir import (
    CallDelta,
    CallEnded,
    CallStarted,
    Event,
    Finished,
    Signature,
    Signed,
    Started,
    TextDelta,
    ThoughtDelta,
    Usage,
    collect,
)
from dragoman.sse import SseDecoder
from tests.corpus import check

Json = dict[str, Any]

SIGNATURE = Signature("c2ln", "gemini-g3")
OTHER = Signature("b3RoZXI", "gemini-g3")
END = Finished(reason="end", raw="STOP")


def call(identity: str, signature: Signature | None = None, args: bytes = b'{"a":1}') -> list[Event]:
    return [CallStarted(id=identity, name="Read", signature=signature), CallDelta(args), CallEnded()]


def whole_stream(
    middle: Iterable[Event], finished: Finished = END, usage: Usage | None = None
) -> list[Event]:
    return [Started("gemini-x", "r"), *middle, *([usage] if usage is not None else []), finished]


def answer(*, with_thinking: bool = True) -> Answer:
    return Answer(id="msg_1", model="claude-x", input_tokens=7, with_thinking=with_thinking)


def stream_bytes(events: Sequence[Event], *, with_thinking: bool = True) -> bytes:
    stream = anthropic.stream(answer(with_thinking=with_thinking))
    return stream.open() + b"".join(map(stream.feed, events))


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
    data = anthropic.encode_response(collect(list(events)), answer(with_thinking=with_thinking))
    message: Json = json.loads(data)
    assert check.anthropic_message_problems(message) == []
    return message


def thought(words: str, signature: str = "") -> Json:
    return {"type": "thinking", "thinking": words, "signature": signature}


def said(words: str) -> Json:
    return {"type": "text", "text": words}


def used(identity: str, **args: Any) -> Json:
    return {"type": "tool_use", "id": identity, "name": "Read", "input": args or {"a": 1}}


__all__ = [
    "END",
    "OTHER",
    "SIGNATURE",
    "Signed",
    "TextDelta",
    "ThoughtDelta",
    "answer",
    "assembled",
    "call",
    "parse",
    "said",
    "stream_bytes",
    "streamed",
    "thought",
    "used",
    "whole",
    "whole_stream",
]
