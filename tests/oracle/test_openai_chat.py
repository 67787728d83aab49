"""OpenAI's own SDK reads what we write: strictly typed, and put together by its own accumulators."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any, get_args, get_type_hints

import httpx2
import openai as sdk
import pytest
from openai.types.chat import (
    ChatCompletion,
    ChatCompletionChunk,
    ChatCompletionContentPartParam,
    ChatCompletionMessageCustomToolCall,
    ChatCompletionMessageParam,
    ChatCompletionToolUnionParam,
)
from openai.types.chat.chat_completion_message_custom_tool_call import Custom
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from pydantic import BaseModel

from dragoman.dialects import openai_chat
from dragoman.dialects.openai_chat.encode import Echo
from dragoman.dialects.openai_chat.wire import Body
from dragoman.errors import DragomanError, ErrorKind, InvalidRequest
from dragoman.ir import Event, Finished, TextDelta
from tests.unit.dialects.openai_chat.stream_checks import (
    answer,
    chunks_of,
    stream_bytes,
    tidy,
    whole,
    whole_bytes,
)
from tests.unit.dialects.openai_chat.test_answer import ATOMS, BLOCKED, TABLE
from tests.unit.dialects.openai_chat.test_errors import TABLE as ERRORS
from tests.unit.dialects.stream_checks import CALLED, END, USAGE, call, whole_stream

Json = dict[str, Any]

CUT = Finished(reason="max_tokens", raw="MAX_TOKENS")
#: What Chat has no field for, said as Google's own Chat endpoint and the reasoning models' gateways say it.
EXTRAS = {"extra_content", "reasoning_content"}
#: The SDK types no custom calls in streams, though the API sends them; its accumulator takes them.
TYPED_IN_STREAMS = [name for name in TABLE if name != "g1 a custom call"]
ASK: Json = {"model": "m", "messages": [{"role": "user", "content": "q"}]}


def client(handler: Callable[[httpx2.Request], httpx2.Response]) -> sdk.OpenAI:
    http = httpx2.Client(transport=httpx2.MockTransport(handler))
    return sdk.OpenAI(base_url="http://gateway/v1", api_key="x", http_client=http, max_retries=0)


def answering(data: bytes, content_type: str, status: int = 200, **headers: str) -> sdk.OpenAI:
    return client(
        lambda _: httpx2.Response(status, content=data, headers={"content-type": content_type, **headers})
    )


def accumulated(events: Sequence[Event]) -> Json:
    with answering(stream_bytes(events), "text/event-stream").chat.completions.stream(**ASK) as stream:
        stream.until_done()
        return tidy(stream.current_completion_snapshot.to_dict(mode="json"))


def unknown_fields(model: BaseModel) -> set[str]:
    """Every field of a tree that its type does not know."""
    found = set(model.model_extra or ())
    for name in type(model).model_fields:
        value = getattr(model, name)
        for item in value if isinstance(value, list) else [value]:
            found |= unknown_fields(item) if isinstance(item, BaseModel) else set()
    return found


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("finished", [END, CUT, BLOCKED], ids=lambda finished: finished.raw)
def test_whole_and_streamed_are_the_same_completion_to_the_sdk(name: str, finished: Finished) -> None:
    events = whole_stream(TABLE[name][0], finished, USAGE)
    strict = ChatCompletion.model_validate_json(whole_bytes(events), strict=True)
    assert unknown_fields(strict) <= EXTRAS
    assert accumulated(events) == tidy(strict.to_dict(mode="json"))


@pytest.mark.parametrize("name", TYPED_IN_STREAMS)
@pytest.mark.parametrize("echo", [Echo(), Echo(include_usage=True), Echo(legacy=True)])
def test_every_chunk_is_of_the_sdks_type(name: str, echo: Echo) -> None:
    for chunk in chunks_of(stream_bytes(whole_stream(TABLE[name][0], BLOCKED, USAGE), echo)):
        assert unknown_fields(ChatCompletionChunk.model_validate(chunk, strict=True)) <= EXTRAS


def test_any_order_of_parts_is_understood() -> None:
    for order in itertools.permutations(ATOMS, 2):
        events = whole_stream(itertools.chain(*order), usage=USAGE)
        assert accumulated(events) == whole(events)


def test_a_plain_answer_has_no_field_of_ours() -> None:
    completion = ChatCompletion.model_validate_json(
        whole_bytes(whole_stream([TextDelta("hi"), *call("call_1")], CALLED)), strict=True
    )
    assert unknown_fields(completion) == set()


def test_h5_h6_the_sdk_sees_cache_and_reasoning_tokens() -> None:
    usage = ChatCompletion.model_validate_json(whole_bytes(whole_stream([], usage=USAGE))).usage
    assert usage is not None
    assert usage.prompt_tokens_details is not None
    assert usage.completion_tokens_details is not None
    assert (usage.prompt_tokens, usage.prompt_tokens_details.cached_tokens) == (100, 60)
    assert (usage.completion_tokens, usage.completion_tokens_details.reasoning_tokens) == (9, 4)


class Weather(BaseModel):
    """The weather of a city."""

    city: str
    celsius: float | None = None


WEATHER = b'{"city":"Oslo","celsius":-3.5}'


def gateway(seen: list[bytes], events: Sequence[Event]) -> sdk.OpenAI:
    """Takes whatever the SDK sends, answers with these events in the form it asks for."""

    def handle(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.content)
        decoded = openai_chat.decode_request(request.content, dict(request.headers))
        if decoded.request.stream:
            data, kind = stream_bytes(events, decoded.echo), "text/event-stream"
        else:
            data, kind = whole_bytes(events, decoded.echo), "application/json"
        return httpx2.Response(200, content=data, headers={"content-type": kind})

    return client(handle)


@pytest.mark.parametrize("stream", [True, False])
def test_b16_structured_answers_are_parsed_by_the_sdk(stream: bool) -> None:
    seen: list[bytes] = []
    completions = gateway(seen, whole_stream([TextDelta(WEATHER.decode())])).chat.completions
    if stream:
        with completions.stream(**ASK, response_format=Weather) as reading:
            parsed = reading.get_final_completion().choices[0].message.parsed
    else:
        parsed = completions.parse(**ASK, response_format=Weather).choices[0].message.parsed
    assert parsed == Weather(city="Oslo", celsius=-3.5)
    output = openai_chat.decode_request(seen[0], {}).request.output
    assert output is not None
    assert json.loads(output.schema or b"")["required"] == ["city", "celsius"]


@pytest.mark.parametrize("stream", [True, False])
def test_functions_made_of_pydantic_models_are_parsed_by_the_sdk(stream: bool) -> None:
    seen: list[bytes] = []
    tool = sdk.pydantic_function_tool(Weather, name="report")
    completions = gateway(
        seen, whole_stream(call("call_1", args=WEATHER, name="report"), CALLED)
    ).chat.completions
    if stream:
        with completions.stream(**ASK, tools=[tool]) as reading:
            message = reading.get_final_completion().choices[0].message
    else:
        message = completions.parse(**ASK, tools=[tool]).choices[0].message
    assert message.tool_calls is not None
    assert message.tool_calls[0].function.parsed_arguments == Weather(city="Oslo", celsius=-3.5)
    (declared,) = openai_chat.decode_request(seen[0], {}).request.tools
    assert (declared.name, declared.description) == ("report", "The weather of a city.")


def test_d6_a_cut_answer_is_never_parsed() -> None:
    completions = gateway([], whole_stream([TextDelta('{"city"')], CUT)).chat.completions
    with pytest.raises(sdk.LengthFinishReasonError):
        completions.parse(**ASK, response_format=Weather)
    streaming = completions.stream(**ASK, response_format=Weather)
    with streaming as reading, pytest.raises(sdk.LengthFinishReasonError):
        reading.until_done()


def test_g1_the_sdk_sees_custom_calls() -> None:
    asked: Json = {**ASK, "tools": [{"type": "custom", "custom": {"name": "patch"}}]}
    events = whole_stream(call("call_1", args=b'{"input":"*** a"}', name="patch"), CALLED)
    (choice,) = gateway([], events).chat.completions.create(**asked).choices
    assert choice.message.tool_calls == [
        ChatCompletionMessageCustomToolCall(
            id="call_1", type="custom", custom=Custom(name="patch", input="*** a")
        )
    ]


def test_arguments_reach_the_tool() -> None:
    args = {"text": 'a "quoted" \\ ünï \u2028 line\n', "n": 10**17, "deep": [{"x": None}]}
    events = whole_stream(call("call_1", args=json.dumps(args).encode()), CALLED)
    (found,) = accumulated(events)["choices"][0]["message"]["tool_calls"]
    assert json.loads(found["function"]["arguments"]) == args


def test_pings_between_all_chunks_do_not_disturb_the_sdk() -> None:
    events = whole_stream(TABLE["e3 parallel calls"][0], CALLED, USAGE)
    stream = openai_chat.stream(answer())
    data = stream.open() + b"".join(stream.ping() + stream.feed(event) for event in events)
    with answering(data, "text/event-stream").chat.completions.stream(**ASK) as reading:
        reading.until_done()
        assert tidy(reading.current_completion_snapshot.to_dict(mode="json")) == whole(events)


ERROR_TYPES: dict[ErrorKind, type[sdk.APIStatusError]] = {
    "invalid_request": sdk.BadRequestError,
    "overflow": sdk.BadRequestError,
    "authentication": sdk.AuthenticationError,
    "permission": sdk.PermissionDeniedError,
    "not_found": sdk.NotFoundError,
    "conflict": sdk.ConflictError,
    "rate_limit": sdk.RateLimitError,
    "quota": sdk.RateLimitError,
    "overloaded": sdk.InternalServerError,
    "timeout": sdk.InternalServerError,
    "internal": sdk.InternalServerError,
}


@pytest.mark.parametrize("kind", ERRORS)
def test_l7_the_sdk_raises_the_right_error(kind: ErrorKind) -> None:
    reply = openai_chat.encode_error(DragomanError("what happened", kind=kind, where="x", retry_after_s=3))
    headers = dict(reply.headers)
    failing = answering(reply.body, headers.pop("content-type"), reply.status, **headers)
    with pytest.raises(ERROR_TYPES.get(kind, sdk.APIStatusError)) as caught:
        failing.chat.completions.create(**ASK)
    error = caught.value
    assert (error.status_code, error.type, error.code, error.param) == (*ERRORS[kind], "x")


@pytest.mark.parametrize(("kind", "attempts"), [("rate_limit", 2), ("quota", 1), ("overflow", 1)])
def test_l3_the_sdk_tries_again_only_where_that_helps(kind: ErrorKind, attempts: int) -> None:
    reply = openai_chat.encode_error(DragomanError("no", kind=kind, retry_after_s=0.001))
    seen: list[httpx2.Request] = []

    def fail(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        headers = {**dict(reply.headers), "retry-after-ms": "1"}
        return httpx2.Response(reply.status, content=reply.body, headers=headers)

    with pytest.raises(sdk.APIStatusError):
        client(fail).with_options(max_retries=1).chat.completions.create(**ASK)
    assert len(seen) == attempts


def test_e7_an_error_in_the_stream_is_raised_and_what_came_before_is_kept() -> None:
    stream = openai_chat.stream(answer())
    data = stream.open() + stream.feed(TextDelta("so far"))
    data += stream.fail(DragomanError("high demand", kind="overloaded"))
    with answering(data, "text/event-stream").chat.completions.stream(**ASK) as reading:
        with pytest.raises(sdk.APIError, match="high demand") as caught:
            reading.until_done()
        assert reading.current_completion_snapshot.choices[0].message.content == "so far"
    assert caught.value.code == "overloaded"


def _words(union: Any, field: str) -> list[str]:
    """The words a union of the SDK's parameters tells its members apart by."""
    hints = [get_type_hints(member).get(field) for member in get_args(union)]
    words = {word for hint in hints for word in get_args(hint) if isinstance(word, str)}
    assert len(words) > 1
    return sorted(words)


PARTS: dict[str, Json] = {
    "text": {"text": "a"},
    "image_url": {"image_url": {"url": "https://h/a.png"}},
    "input_audio": {"input_audio": {"data": "AAAA", "format": "wav"}},
    "file": {"file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
}


@pytest.mark.parametrize("kind", _words(ChatCompletionContentPartParam, "type"))
def test_every_part_the_sdk_can_send_is_taken(kind: str) -> None:
    message = {"role": "user", "content": [{"type": kind, **PARTS[kind]}]}
    openai_chat.decode_request(json.dumps({**ASK, "messages": [message]}).encode(), {})


@pytest.mark.parametrize("role", _words(ChatCompletionMessageParam, "role"))
def test_every_role_the_sdk_can_send_is_taken(role: str) -> None:
    message = {"role": role, "content": "a", "tool_call_id": "call_1", "name": "f"}
    openai_chat.decode_request(json.dumps({**ASK, "messages": [message]}).encode(), {})


@pytest.mark.parametrize("kind", _words(ChatCompletionToolUnionParam, "type"))
def test_every_tool_the_sdk_can_send_is_taken(kind: str) -> None:
    tools = [{"type": kind, kind: {"name": "f"}}]
    openai_chat.decode_request(json.dumps({**ASK, "tools": tools}).encode(), {})


def test_every_setting_the_sdk_can_send_is_known_to_us() -> None:
    ours = set(Body.__struct_fields__)
    assert set(get_type_hints(CompletionCreateParamsBase)) - ours == set()


def test_a_setting_of_the_wrong_type_is_named_to_the_user() -> None:
    with pytest.raises(InvalidRequest) as caught:
        openai_chat.decode_request(json.dumps({**ASK, "seed": "x"}).encode(), {})
    reply = openai_chat.encode_error(caught.value)
    failing = answering(reply.body, "application/json", reply.status)
    with pytest.raises(sdk.BadRequestError) as raised:
        failing.chat.completions.create(**ASK)
    assert raised.value.param == "seed"
