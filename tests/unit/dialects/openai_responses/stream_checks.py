"""Events through the stream machine and through the collector, as a client puts them together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from openai import omit
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import Response as SdkResponse
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from dragoman.dialects import openai_responses
from dragoman.dialects.base import Answer
from dragoman.dialects.openai_responses.encode import Echo
from dragoman.dialects.openai_responses.tools import ClientTool
from dragoman.ir import Event, TextDelta
from tests.corpus.responses_adapter import assembled, parse_events
from tests.unit.dialects import stream_checks as shared

Json = dict[str, Any]

call = partial(shared.call, name="read")
FACES = {
    "ns.deep": ClientTool("function_call", "deep", "ns"),
    "apply_patch": ClientTool("custom_tool_call", "apply_patch"),
    "ns.exec": ClientTool("custom_tool_call", "exec", "ns"),
    "tool_search": ClientTool("tool_search_call", "tool_search"),
    "local_shell": ClientTool("local_shell_call", "local_shell"),
    "shell": ClientTool("shell_call", "shell"),
    "patch": ClientTool("apply_patch_call", "patch"),
}
SDK_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def answer(*, carries: bool = True, compacts: bool = False, includes: Iterable[str] = ()) -> Answer:
    echo = Echo(client_tools=FACES, carries=carries, compacts=compacts, includes=frozenset(includes))
    return Answer(id="resp_1", model="gpt-5", input_tokens=7, created_s=1_700_000_000, echo=echo)


def stream_bytes(events: Sequence[Event], given: Answer | None = None) -> bytes:
    return shared.streamed_bytes(openai_responses, events, given or answer())


def whole(events: Sequence[Event], given: Answer | None = None) -> Json:
    return dict(json.loads(shared.whole_bytes(openai_responses, events, given or answer())))


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
