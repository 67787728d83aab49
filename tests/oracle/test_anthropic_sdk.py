"""The vendor's own SDK reads what we write: strictly typed, and put together by its own accumulators."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any, get_args, get_type_hints

import anthropic as sdk
import httpx2
import pytest
from anthropic.types import Message, RawMessageStreamEvent
from anthropic.types.beta import (
    BetaContentBlockParam,
    BetaMessage,
    BetaRawMessageStreamEvent,
    BetaThinkingConfigParam,
    BetaToolUnionParam,
)
from pydantic import TypeAdapter

from dragoman.dialects import anthropic
from dragoman.dialects.base import Reply
from dragoman.errors import DragomanError, ErrorKind
from dragoman.ir import Event, Finished, Usage, collect
from tests.unit.dialects.anthropic.stream_checks import answer, parse, stream_bytes, whole
from tests.unit.dialects.anthropic.test_errors import TABLE as ERRORS
from tests.unit.dialects.anthropic.test_stream import ATOMS, TABLE
from tests.unit.dialects.stream_checks import call, whole_stream

Json = dict[str, Any]

USAGE = Usage(input_tokens=100, cached_tokens=60, output_tokens=9, thought_tokens=4)
STREAM_EVENT: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
BETA_STREAM_EVENT: TypeAdapter[Any] = TypeAdapter(BetaRawMessageStreamEvent)
BLOCKED = Finished(reason="blocked", raw="SAFETY", detail="no")
ENDINGS = (BLOCKED, Finished(reason="max_tokens", raw="MAX_TOKENS"), Finished(reason="end", raw="STOP"))


def client(handler: Callable[[httpx2.Request], httpx2.Response]) -> sdk.Anthropic:
    http = httpx2.Client(transport=httpx2.MockTransport(handler))
    return sdk.Anthropic(base_url="http://gateway", api_key="x", http_client=http, max_retries=0)


def answering(data: bytes, content_type: str, status: int = 200, **headers: str) -> sdk.Anthropic:
    return client(
        lambda _: httpx2.Response(status, content=data, headers={"content-type": content_type, **headers})
    )


ASK: Json = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"}]}


def accumulated(events: Sequence[Event]) -> Message:
    with answering(stream_bytes(events), "text/event-stream").messages.stream(**ASK) as stream:
        return stream.get_final_message()


def plain(message: Message) -> Json:
    return message.model_dump(
        mode="json", exclude_none=True, exclude={"content": {"__all__": {"parsed_output"}}}
    )


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("finished", ENDINGS, ids=lambda finished: finished.raw)
def test_whole_and_streamed_are_the_same_message_to_the_sdk(name: str, finished: Finished) -> None:
    events = whole_stream(TABLE[name][0], finished, USAGE)
    strict = Message.model_validate_json(anthropic.encode_response(collect(events), answer()), strict=True)
    BetaMessage.model_validate_json(anthropic.encode_response(collect(events), answer()), strict=True)
    assert plain(accumulated(events)) == plain(strict)
    assert strict.model_extra == {}
    assert not any(block.model_extra for block in strict.content)


def test_any_order_of_parts_is_understood() -> None:
    for order in itertools.permutations(ATOMS, 2):
        events = whole_stream(itertools.chain(*order))
        assert plain(accumulated(events)) == plain(Message.model_validate(whole(events)))


@pytest.mark.parametrize("name", TABLE)
def test_every_event_is_of_the_sdks_types(name: str) -> None:
    for event in parse(stream_bytes(whole_stream(TABLE[name][0], BLOCKED, USAGE))):
        read = STREAM_EVENT.validate_python(event["data"])
        assert read.type == event["event"]
        assert not read.model_extra
        BETA_STREAM_EVENT.validate_python(event["data"])


def test_h5_h6_the_sdk_sees_cache_and_thinking_tokens() -> None:
    events = whole_stream(TABLE["text"][0], usage=USAGE)
    for message in (accumulated(events), Message.model_validate(whole(events))):
        usage = message.usage
        assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (40, 60, 9)
        assert usage.output_tokens_details is not None
        assert usage.output_tokens_details.thinking_tokens == 4
        assert usage.model_extra == {}


def test_d7_the_sdk_sees_why_it_was_refused() -> None:
    details = accumulated(whole_stream([], BLOCKED)).stop_details
    assert details is not None
    assert (details.type, details.explanation) == ("refusal", "no")


def test_arguments_reach_the_tool() -> None:
    args = {"text": 'a "quoted" \\ ünï \u2028 line\n', "n": 10**17, "deep": [{"x": None}]}
    (block,) = accumulated(whole_stream(call("toolu_1", args=json.dumps(args).encode()))).content
    assert block.type == "tool_use"
    assert block.input == args


def test_pings_between_all_events_do_not_disturb_the_sdk() -> None:
    events = whole_stream(TABLE["a13 parallel calls"][0])
    stream = anthropic.stream(answer())
    data = stream.open() + b"".join(stream.ping() + stream.feed(event) for event in events)
    with answering(data, "text/event-stream").messages.stream(**ASK) as reading:
        assert plain(reading.get_final_message()) == plain(Message.model_validate(whole(events)))


ERROR_TYPES: dict[ErrorKind, type[sdk.APIStatusError]] = {
    "invalid_request": sdk.BadRequestError,
    "overflow": sdk.BadRequestError,
    "authentication": sdk.AuthenticationError,
    "permission": sdk.PermissionDeniedError,
    "not_found": sdk.NotFoundError,
    "rate_limit": sdk.RateLimitError,
    "quota": sdk.RateLimitError,
    "internal": sdk.InternalServerError,
}


@pytest.mark.parametrize("kind", ERRORS)
def test_l7_the_sdk_raises_the_right_error(kind: ErrorKind) -> None:
    reply: Reply = anthropic.encode_error(DragomanError("what happened", kind=kind, retry_after_s=3))
    headers = dict(reply.headers)
    failing = answering(reply.body, headers.pop("content-type"), reply.status, **headers)
    with pytest.raises(ERROR_TYPES.get(kind, sdk.APIStatusError)) as caught:
        failing.messages.create(**ASK)
    assert caught.value.status_code == reply.status
    assert caught.value.body == json.loads(reply.body)


def test_e7_an_error_in_the_stream_is_raised_and_what_came_before_is_whole() -> None:
    stream = anthropic.stream(answer())
    opening = whole_stream(TABLE["text"][0])[:-1]
    data = stream.open() + b"".join(map(stream.feed, opening))
    data += stream.fail(DragomanError("high demand", kind="overloaded"))
    with answering(data, "text/event-stream").messages.stream(**ASK) as reading:
        with pytest.raises(sdk.APIStatusError, match="high demand"):
            reading.until_done()
        assert [block.type for block in reading.current_message_snapshot.content] == ["text"]


def _kinds(union: Any) -> list[str]:
    """The `type` words of a union of the SDK's parameters."""
    hints = [get_type_hints(member).get("type") for member in get_args(union) if isinstance(member, type)]
    words = {word for hint in hints for word in get_args(hint) if isinstance(word, str)}
    assert len(words) > 3
    return sorted(words)


@pytest.mark.parametrize("kind", _kinds(BetaContentBlockParam))
def test_f3_every_block_the_sdk_can_send_is_taken(kind: str) -> None:
    block: Json = {"type": kind, "id": "a", "name": "f", "tool_use_id": "a", "text": None}
    if kind in ("image", "document"):
        block["source"] = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    messages = [{"role": role, "content": [block]} for role in ("user", "assistant", "system")]
    anthropic.decode_request(json.dumps({**ASK, "messages": messages}).encode(), {})


@pytest.mark.parametrize("kind", _kinds(BetaToolUnionParam))
def test_f3_every_tool_the_sdk_can_send_is_taken(kind: str) -> None:
    tools = [{"type": kind, "name": "f", "mcp_server_name": "s"}]
    servers = [{"type": "url", "name": "s", "url": "https://mcp.example"}] if kind == "mcp_toolset" else []
    anthropic.decode_request(json.dumps({**ASK, "tools": tools, "mcp_servers": servers}).encode(), {})


@pytest.mark.parametrize("kind", _kinds(BetaThinkingConfigParam))
def test_f2_every_kind_of_thinking_the_sdk_can_ask_for_is_known(kind: str) -> None:
    asked = {**ASK, "thinking": {"type": kind, "budget_tokens": 2048}}
    assert anthropic.decode_request(json.dumps(asked).encode(), {}).notes == ()


def test_count_tokens_is_read() -> None:
    counting = answering(anthropic.encode_count(12), "application/json")
    assert counting.messages.count_tokens(model="m", messages=ASK["messages"]).input_tokens == 12


def test_threads_fall_back_to_the_whole_conversation() -> None:
    """If the gateway rejects threads, the tool runner sends the whole conversation in each turn."""
    seen: list[Json] = []
    answers = iter([whole(whole_stream(call("toolu_1"), Finished(reason="tool_calls", raw="STOP"))), None])

    def gateway(request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        seen.append(body)
        try:
            anthropic.decode_request(request.content, dict(request.headers))
        except DragomanError as error:
            reply = anthropic.encode_error(error)
            return httpx2.Response(reply.status, content=reply.body, headers=dict(reply.headers))
        done = whole(whole_stream(TABLE["text"][0]))
        return httpx2.Response(200, json=next(answers) or done)

    @sdk.beta_tool
    def Read(a: int) -> str:  # noqa: N802
        """Read."""
        return f"read {a}"

    runner = client(gateway).beta.messages.tool_runner(**ASK, tools=[Read])
    assert [message.stop_reason for message in runner] == ["tool_use", "end_turn"]
    assert "thread" in seen[0]
    assert "thread" not in seen[-1]
    assert [message["role"] for message in seen[-1]["messages"]] == ["user", "assistant", "user"]
