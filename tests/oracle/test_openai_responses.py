"""The vendor's own SDK reads what we write, strictly typed, and sends what we read."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any, get_args, get_type_hints

import httpx2
import openai as sdk
import pytest
from openai.types.responses import CompactedResponse, Response, ResponseInputItemParam, ToolParam
from openai.types.responses.response_create_params import ToolChoice
from pydantic import BaseModel

from dragoman.dialects import openai_responses
from dragoman.dialects.base import Answer
from dragoman.dialects.openai_responses.compaction import compact_request, compact_response
from dragoman.dialects.openai_responses.conversation_state import encode_list, input_items
from dragoman.errors import DragomanError, ErrorKind, InvalidRequest
from dragoman.ir import Event, Finished, Usage, collect
from tests.corpus.responses_adapter import parse_events
from tests.unit.dialects.openai_responses.stream_checks import (
    SDK_EVENT,
    answer,
    call,
    folded,
    stream_bytes,
    text,
    whole,
)
from tests.unit.dialects.openai_responses.test_errors import TABLE as ERRORS
from tests.unit.dialects.openai_responses.test_stream import ATOMS, BLOCKED, CALLS, TABLE
from tests.unit.dialects.stream_checks import whole_stream

Json = dict[str, Any]

USAGE = Usage(input_tokens=100, cached_tokens=60, output_tokens=9, thought_tokens=4)
ENDINGS = (BLOCKED, Finished(reason="max_tokens", raw="MAX_TOKENS"), Finished(reason="end", raw="STOP"))
ASK: Json = {"model": "gpt-5", "input": "q"}


def client(handler: Callable[[httpx2.Request], httpx2.Response], **more: Any) -> sdk.OpenAI:
    http = httpx2.Client(transport=httpx2.MockTransport(handler))
    return sdk.OpenAI(base_url="http://gateway/v1", api_key="x", http_client=http, max_retries=0, **more)


def answering(data: bytes, content_type: str, status: int = 200, **headers: str) -> sdk.OpenAI:
    return client(
        lambda _: httpx2.Response(status, content=data, headers={"content-type": content_type, **headers}),
        _strict_response_validation=status == 200,
    )


def streaming(events: list[Event], given: Answer | None = None) -> sdk.OpenAI:
    return answering(stream_bytes(events, given), "text/event-stream")


def plain(response: BaseModel) -> Json:
    """What a response says, without what the SDK adds of its own."""

    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: strip(v) for k, v in value.items() if k not in ("parsed", "parsed_arguments")}
        return [strip(item) for item in value] if isinstance(value, list) else value

    return dict(strip(response.model_dump(mode="json", exclude_unset=True, by_alias=True)))


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("finished", ENDINGS, ids=lambda finished: finished.raw)
def test_whole_and_streamed_are_the_same_response_to_the_sdk(name: str, finished: Finished) -> None:
    events = whole_stream(TABLE[name][0], finished, USAGE)
    body = openai_responses.encode_response(collect(events), answer())
    strict = Response.model_validate_json(body, strict=True)
    assert set(strict.model_extra or {}) == {"store"}  # OpenAI sends it too; the SDK does not list it
    with streaming(events).responses.stream(**ASK) as reading:
        last: Any = list(reading)[-1]
    assert last.type == f"response.{strict.status}"
    assert plain(last.response) == plain(strict) == json.loads(body)


@pytest.mark.parametrize("name", CALLS)
def test_g1_every_shape_of_call_is_the_sdks(name: str) -> None:
    events = whole_stream(call("c", name=name, args=CALLS[name][0]))
    body = openai_responses.encode_response(collect(events), answer())
    (item,) = Response.model_validate_json(body, strict=True).output
    assert item.type == CALLS[name][1]["type"]
    with streaming(events).responses.stream(**ASK) as reading:
        (again,) = reading.get_final_response().output
    assert plain(again) == plain(item)


def test_any_order_of_parts_is_understood() -> None:
    for order in itertools.permutations(ATOMS, 2):
        events = whole_stream(itertools.chain(*order))
        completed, _ = folded(stream_bytes(events))
        assert completed is not None
        assert plain(completed) == whole(events)


@pytest.mark.parametrize("name", TABLE)
def test_every_event_is_of_the_sdks_types(name: str) -> None:
    for event in parse_events(stream_bytes(whole_stream(TABLE[name][0], BLOCKED, USAGE))):
        read = SDK_EVENT.validate_python(event["data"])
        assert read.type == event["event"]
        assert not read.model_extra


def test_the_text_and_the_usage_are_where_programs_look_for_them() -> None:
    events = whole_stream([*text("a", "b"), *call("call_1")], usage=USAGE)
    done = answering(json.dumps(whole(events)).encode(), "application/json").responses.create(**ASK)
    assert done.output_text == "ab"
    assert done.usage is not None
    assert done.usage.input_tokens_details.cached_tokens == 60
    assert done.usage.output_tokens_details.reasoning_tokens == 4


def test_parsed_answers_and_arguments_reach_the_program() -> None:
    class Weather(BaseModel):
        city: str

    data = stream_bytes(whole_stream(text('{"city":', '"Oslo"}')))
    reading = answering(data, "text/event-stream").responses.stream(**ASK, text_format=Weather)
    with reading as stream:
        assert stream.get_final_response().output_parsed == Weather(city="Oslo")
    events = whole_stream(call("call_1", name="get_weather", args=b'{"city":"Oslo"}'))
    tool = sdk.pydantic_function_tool(Weather, name="get_weather")
    function: Any = {"type": "function", **tool["function"]}
    done = answering(json.dumps(whole(events)).encode(), "application/json").responses.parse(
        **ASK, tools=[function]
    )
    (item,) = done.output
    assert item.type == "function_call"
    assert item.parsed_arguments == {"city": "Oslo"}


def test_pings_between_all_events_do_not_disturb_the_sdk() -> None:
    events = whole_stream(TABLE["a13 parallel calls"][0])
    stream = openai_responses.stream(answer())
    data = stream.open() + b"".join(stream.ping() + stream.feed(event) for event in events)
    with answering(data, "text/event-stream").responses.stream(**ASK) as reading:
        assert plain(reading.get_final_response()) == whole(events)


ERROR_TYPES: dict[ErrorKind, type[sdk.APIStatusError]] = {
    "invalid_request": sdk.BadRequestError,
    "overflow": sdk.BadRequestError,
    "authentication": sdk.AuthenticationError,
    "permission": sdk.PermissionDeniedError,
    "not_found": sdk.NotFoundError,
    "conflict": sdk.ConflictError,
    "rate_limit": sdk.RateLimitError,
    "quota": sdk.RateLimitError,
    "internal": sdk.InternalServerError,
    "overloaded": sdk.InternalServerError,
}


@pytest.mark.parametrize("kind", ERRORS)
def test_l7_the_sdk_raises_the_right_error(kind: ErrorKind) -> None:
    reply = openai_responses.encode_error(DragomanError("what happened", kind=kind, retry_after_s=3))
    headers = dict(reply.headers)
    failing = answering(reply.body, headers.pop("content-type"), reply.status, **headers)
    with pytest.raises(ERROR_TYPES.get(kind, sdk.APIStatusError)) as caught:
        failing.responses.create(**ASK)
    assert caught.value.status_code == reply.status
    assert caught.value.code == ERRORS[kind][1]
    assert "what happened" in str(caught.value)


@pytest.mark.parametrize("kind", ERRORS)
def test_e7_g5_a_failure_in_the_stream_is_read_with_its_code(kind: ErrorKind) -> None:
    error = DragomanError("high demand", kind=kind, retry_after_s=2)
    data = openai_responses.failed_stream(error, answer())
    reading = client(
        lambda _: httpx2.Response(200, content=data, headers={"content-type": "text/event-stream"})
    )
    *_, last = reading.responses.create(**ASK, stream=True)
    assert last.type == "response.failed"
    assert last.response.error is not None
    assert last.response.error.code == ERRORS[kind][2]
    assert "high demand" in last.response.error.message


def test_e7_what_came_before_a_failure_is_whole() -> None:
    stream = openai_responses.stream(answer())
    data = stream.open() + b"".join(map(stream.feed, whole_stream(text("a"))[:-1]))
    data += stream.fail(DragomanError("cut", kind="overloaded"))
    completed, last = folded(data)
    assert completed is None
    assert (last.status, last.output_text) == ("failed", "a")


def _kinds(union: Any) -> list[str]:
    """The `type` words of a union of the SDK's parameters."""
    hints = [get_type_hints(member).get("type") for member in get_args(union) if isinstance(member, type)]
    words = {word for hint in hints for inner in (hint, *get_args(hint)) for word in get_args(inner)}
    found = sorted(word for word in words if isinstance(word, str))
    assert len(found) > 3
    return found


ITEM: Json = {
    "id": "x_1",
    "call_id": "c",
    "name": "f",
    "role": "user",
    "arguments": "{}",
    "output": "x",
    "tools": [],
    "summary": [],
    "code": "1",
}


@pytest.mark.parametrize("kind", _kinds(ResponseInputItemParam))
def test_every_item_the_sdk_can_send_is_taken(kind: str) -> None:
    item = {**ITEM, "type": kind}
    if kind == "computer_call_output":
        item["output"] = {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"}
    body = json.dumps({**ASK, "input": [{"role": "user", "content": "q"}, item]}).encode()
    if kind == "item_reference":
        with pytest.raises(InvalidRequest, match="no stored item"):
            openai_responses.decode_request(body, {})
    else:
        openai_responses.decode_request(body, {})


@pytest.mark.parametrize("kind", _kinds(ToolParam))
def test_every_tool_the_sdk_can_send_is_taken(kind: str) -> None:
    body = json.dumps({**ASK, "tools": [{"type": kind, "name": "f"}]}).encode()
    if kind == "mcp":
        with pytest.raises(InvalidRequest, match="MCP"):
            openai_responses.decode_request(body, {})
    else:
        openai_responses.decode_request(body, {})


@pytest.mark.parametrize("kind", [kind for kind in _kinds(ToolChoice) if kind != "mcp"])
def test_every_choice_the_sdk_can_send_is_taken(kind: str) -> None:
    choice = {"type": kind, "name": "f", "mode": "auto", "tools": [{"type": "function", "name": "f"}]}
    tools = [{"type": "function", "name": "f"}]
    openai_responses.decode_request(json.dumps({**ASK, "tools": tools, "tool_choice": choice}).encode(), {})


def gateway(events: list[Event]) -> tuple[sdk.OpenAI, list[bytes]]:
    """A client of a gateway that answers everything with these events, and what it was asked."""
    seen: list[bytes] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.content)
        decoded = openai_responses.decode_request(request.content, dict(request.headers))
        given = Answer(id="resp_1", model=decoded.request.model, created_s=1, echo=decoded.echo)
        if decoded.request.stream:
            kind, body = "text/event-stream", stream_bytes(events, given)
        else:
            kind, body = "application/json", openai_responses.encode_response(collect(events), given)
        return httpx2.Response(200, content=body, headers={"content-type": kind})

    return client(handler, _strict_response_validation=True), seen


@pytest.mark.parametrize("stream", [True, False])
def test_the_answer_repeats_what_was_asked(stream: bool) -> None:
    asking, _ = gateway(whole_stream(text("a"), usage=USAGE))
    asked: Json = {
        "model": "gpt-5",
        "input": [{"role": "user", "content": "q"}],
        "instructions": "be brief",
        "tools": [
            {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True},
            {"type": "custom", "name": "g", "format": {"type": "text"}},
            {"type": "namespace", "name": "n", "description": "d", "tools": []},
            {"type": "web_search"},
        ],
        "tool_choice": {"type": "function", "name": "f"},
        "metadata": {"k": "v"},
        "text": {"format": {"type": "json_object"}, "verbosity": "low"},
        "reasoning": {"effort": "low", "summary": "auto"},
        "temperature": 0.5,
        "top_p": 0.9,
        "truncation": "auto",
        "parallel_tool_calls": False,
        "max_output_tokens": 77,
        "previous_response_id": "resp_0",
    }
    if stream:
        with asking.responses.stream(**asked) as reading:
            response: Response = reading.get_final_response()
    else:
        response = asking.responses.create(**asked)
    told = json.loads(response.to_json(exclude_unset=True))
    assert {key: told[key] for key in asked if key != "input"} == {
        key: value for key, value in asked.items() if key != "input"
    }


def test_compaction_and_counting_have_the_sdks_shapes() -> None:
    def handler(request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith("/input_tokens"):
            body = openai_responses.encode_count(12)
        elif request.url.path.endswith("/input_items"):
            body = encode_list(input_items(json.dumps(ASK).encode(), "t"))
        else:
            decoded = openai_responses.decode_request(compact_request(request.content), {})
            given = Answer(id="resp_1", model="m", created_s=1, echo=decoded.echo)
            whole_body = openai_responses.encode_response(collect(whole_stream(text("sum"))), given)
            body = compact_response(whole_body, input_items(request.content, "t"))
        return httpx2.Response(200, content=body, headers={"content-type": "application/json"})

    asking = client(handler)
    assert asking.responses.input_tokens.count(model="m", input="q").input_tokens == 12
    compacted = asking.responses.compact(model="m", input="q")
    assert isinstance(compacted, CompactedResponse)
    assert [item.type for item in compacted.output] == ["message", "compaction"]
    assert compacted.usage.total_tokens == 0
    listed = list(asking.responses.input_items.list("resp_1"))
    assert [item.type for item in listed] == ["message"]
