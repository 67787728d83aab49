"""Events through the stream machine and through the collector, as a client puts them together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

from dragoman.dialects import openai_chat
from dragoman.dialects.base import Answer
from dragoman.dialects.openai_chat.encode import Echo
from dragoman.ir import Event, Signature, seal
from tests.corpus.chat_adapter import parse_chunks
from tests.unit.dialects import stream_checks as shared

Json = dict[str, Any]

ECHO = Echo(include_usage=True, custom=frozenset({"patch"}))


def answer(echo: Echo = ECHO, *, with_thinking: bool = True) -> Answer:
    return Answer(
        id="chatcmpl_1",
        model="gpt-x",
        input_tokens=7,
        with_thinking=with_thinking,
        created_s=1_700_000_000,
        echo=echo,
    )


def stream_bytes(events: Sequence[Event], echo: Echo = ECHO, *, with_thinking: bool = True) -> bytes:
    return shared.streamed_bytes(openai_chat, events, answer(echo, with_thinking=with_thinking))


def chunks_of(data: bytes) -> list[Json]:
    """The chunks of a stream that ended well."""
    events = parse_chunks(data)
    assert [event["event"] for event in events] == [None] * len(events)
    assert events[-1]["data"] == "[DONE]"
    return [event["data"] for event in events[:-1]]


def folded(data: bytes) -> Json:
    """The completion OpenAI's own accumulator makes of a stream."""
    state: ChatCompletionStreamState[None] = ChatCompletionStreamState()
    for chunk in chunks_of(data):
        state.handle_chunk(ChatCompletionChunk.construct(**chunk))
    completion: Json = state.current_completion_snapshot.to_dict(mode="json")
    return tidy(completion)


def tidy(completion: Json) -> Json:
    """Without nulls, and without what accumulators leave behind."""
    kept: Json = _without_nulls(completion)
    for item in kept["choices"][0]["message"].get("tool_calls", ()):
        item.pop("index", None)
    return kept


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def streamed(events: Sequence[Event], echo: Echo = ECHO, *, with_thinking: bool = True) -> Json:
    return folded(stream_bytes(events, echo, with_thinking=with_thinking))


def whole(events: Sequence[Event], echo: Echo = ECHO, *, with_thinking: bool = True) -> Json:
    return tidy(json.loads(whole_bytes(events, echo, with_thinking=with_thinking)))


def whole_bytes(events: Sequence[Event], echo: Echo = ECHO, *, with_thinking: bool = True) -> bytes:
    return shared.whole_bytes(openai_chat, events, answer(echo, with_thinking=with_thinking))


def signed(signature: Signature, target: str) -> Json:
    return {"google": {"thought_signature": seal(signature, target)}}
