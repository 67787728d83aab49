"""Events through the stream machine and through the collector, as a client puts them together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from dragoman.dialects.base import Answer
from dragoman.dialects.bedrock import ConverseClient
from dragoman.dialects.bedrock.encode import Echo
from dragoman.ir import Event
from tests.unit.dialects import stream_checks as shared
from tests.unit.dialects.bedrock.grammar import read_stream

Json = dict[str, Any]

CLIENT = ConverseClient("m", stream=True)


def answer(echo: Any = Echo(), *, with_thinking: bool = True) -> Answer:  # noqa: B008 (frozen)
    return Answer(
        id="msg_1",
        model="m",
        input_tokens=7,
        with_thinking=with_thinking,
        elapsed_ms=lambda: 42,
        echo=echo,
    )


def stream_bytes(events: Sequence[Event], *, with_thinking: bool = True) -> bytes:
    return shared.streamed_bytes(CLIENT, events, answer(with_thinking=with_thinking))


def streamed(events: Sequence[Event], *, with_thinking: bool = True) -> Json:
    return read_stream(stream_bytes(events, with_thinking=with_thinking)).as_whole()


def whole_bytes(events: Sequence[Event], *, with_thinking: bool = True) -> bytes:
    return shared.whole_bytes(CLIENT, events, answer(with_thinking=with_thinking))


def whole(events: Sequence[Event], *, with_thinking: bool = True) -> Json:
    found: Json = json.loads(whole_bytes(events, with_thinking=with_thinking))
    return found


def content(found: Json) -> list[Json]:
    blocks: list[Json] = found["output"]["message"]["content"]
    return blocks
