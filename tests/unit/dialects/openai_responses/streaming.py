"""Events through the stream machine and through the collector, as a client puts them together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from openai import omit
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import Response as SdkResponse
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from dragoman.dialects import openai_responses
from dragoman.dialects.base import Answer
from dragoman.dialects.openai_responses.echo import Echo
from dragoman.dialects.openai_responses.tools import Face
from dragoman.ir import (
    CallDelta,
    CallEnded,
    CallStarted,
    Event,
    Finished,
    Signature,
    Started,
    TextDelta,
    Usage,
    collect,
)
from tests.corpus.responses import assembled, parse_events

Json = dict[str, Any]

SIGNATURE = Signature("c2ln", "gemini-g3")
OTHER = Signature("b3RoZXI", "gemini-g3")
END = Finished(reason="end", raw="STOP")
FACES = {
    "ns.deep": Face("function_call", "deep", "ns"),
    "apply_patch": Face("custom_tool_call", "apply_patch"),
    "ns.exec": Face("custom_tool_call", "exec", "ns"),
    "tool_search": Face("tool_search_call", "tool_search"),
    "local_shell": Face("local_shell_call", "local_shell"),
    "shell": Face("shell_call", "shell"),
    "patch": Face("apply_patch_call", "patch"),
}
SDK_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def call(
    identity: str, signature: Signature | None = None, args: bytes = b'{"a":1}', name: str = "read"
) -> list[Event]:
    return [CallStarted(id=identity, name=name, signature=signature), CallDelta(args), CallEnded()]


def whole_stream(
    middle: Iterable[Event], finished: Finished = END, usage: Usage | None = None
) -> list[Event]:
    return [Started("gemini-x", "r"), *middle, *([usage] if usage is not None else []), finished]


def answer(*, carries: bool = True, compacts: bool = False) -> Answer:
    echo = Echo(faces=FACES, carries=carries, compacts=compacts)
    return Answer(id="resp_1", model="gpt-5", input_tokens=7, created_s=1_700_000_000, echo=echo)


def stream_bytes(events: Sequence[Event], given: Answer | None = None) -> bytes:
    stream = openai_responses.stream(given or answer())
    return stream.open() + b"".join(map(stream.feed, events))


def whole(events: Sequence[Event], given: Answer | None = None) -> Json:
    return dict(json.loads(openai_responses.encode_response(collect(list(events)), given or answer())))


def streamed(events: Sequence[Event], given: Answer | None = None) -> Json:
    return assembled(stream_bytes(events, given))


def names(data: bytes) -> list[str]:
    return [event["data"]["type"].removeprefix("response.") for event in parse_events(data)]


def items(events: Sequence[Event], given: Answer | None = None) -> list[Json]:
    """The output of an answer, after making sure that stream and whole say the same."""
    response = whole(events, given)
    assert streamed(events, given) == response
    return list(response["output"])


def folded(data: bytes) -> tuple[SdkResponse | None, SdkResponse]:
    """What the SDK's own accumulator makes of a stream: completed, and the last body it was told."""
    state: ResponseStreamState[Any] = ResponseStreamState(input_tools=omit, text_format=omit)
    last: Any = None
    for event in parse_events(data):
        told = SDK_EVENT.validate_python(event["data"])
        for fired in state.handle_event(told):
            last = getattr(fired, "response", last)
    return state._completed_response, last


def text(*words: str) -> list[Event]:
    return [TextDelta(word) for word in words]
