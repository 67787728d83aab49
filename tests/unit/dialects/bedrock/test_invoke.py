"""InvokeModel: the Messages API in another wrapper, and CountTokens of both kinds."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest

from dragoman.dialects import CLIENTS
from dragoman.dialects.base import ClientDialect
from dragoman.dialects.bedrock import CountClient, InvokeClient
from dragoman.errors import DragomanError, InvalidRequest, UpstreamError
from dragoman.http.aws_eventstream import STREAM_TYPE
from dragoman.ir import Event, Failed, TextDelta, ThoughtDelta, collect
from tests.unit.dialects.anthropic.stream_checks import answer, parse, stream_bytes
from tests.unit.dialects.bedrock.builders import user
from tests.unit.dialects.bedrock.grammar import frames_of
from tests.unit.dialects.stream_checks import call, whole_stream

Json = dict[str, Any]

INNER: ClientDialect = CLIENTS["anthropic"]
ASKED: Json = {
    "anthropic_version": "bedrock-2023-05-31",
    "anthropic_beta": ["interleaved-thinking-2025-05-14"],
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "hi"}],
}
MODEL = "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-x-v1:0"


def invoke(*, stream: bool = False) -> InvokeClient:
    return InvokeClient(INNER, MODEL, stream=stream)


def encoded(body: Any) -> bytes:
    return json.dumps(body).encode()


@pytest.mark.parametrize("stream", [True, False])
def test_the_request_is_the_inner_ones_with_model_and_stream(stream: bool) -> None:
    decoded = invoke(stream=stream).decode_request(encoded(ASKED), {"x-claude-code-session-id": "s"})
    inner = INNER.decode_request(encoded({**ASKED, "model": MODEL, "stream": stream}), {})
    assert decoded.request == msgspec.structs.replace(inner.request, session="s")
    assert decoded.headers == ((("x-amzn-bedrock-content-type", "application/json"),) if stream else ())


@pytest.mark.parametrize("version", ["2026-10-21", "bedrock-2023-05-31", "someday", None])
def test_any_version_will_do(version: str | None) -> None:
    invoke().decode_request(encoded({**ASKED, "anthropic_version": version}), {})


def test_the_address_counts_whatever_the_body_says() -> None:
    raw = encoded({**ASKED, "model": "another", "stream": True})
    found = invoke().decode_request(raw, {}).request
    assert (found.model, found.stream) == (MODEL, False)


@pytest.mark.parametrize("space", [b"", b" ", b"\n\t "])
def test_space_before_a_body_does_not_matter(space: bytes) -> None:
    raw = space + b"{" + space + encoded(ASKED)[1:]
    assert invoke().decode_request(raw, {}).request.model == MODEL


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"{}", "missing required field `messages`"),
        (b" { } ", "missing required field `messages`"),
        (b"", "empty"),
        (b"[]", "Expected `object`"),
        (b"{", "not valid JSON"),
        (b'{"prompt":"Human: hi"}', "missing required field `messages`"),
        (b'{"messages":[{"role":"user","content":[{"text":"hi"}]}]}', "missing required field `type`"),
    ],
)
def test_what_is_no_messages_request_is_refused_in_its_words(raw: bytes, why: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        invoke().decode_request(raw, {})
    assert why in caught.value.message


EVENTS = whole_stream([ThoughtDelta("hm"), TextDelta("ünï\u2028"), *call("toolu_1")])


def chunks_of(data: bytes) -> list[Json]:
    frames = frames_of(data)
    assert {frame.headers[":message-type"] for frame in frames} == {"event"}
    assert {frame.headers[":event-type"] for frame in frames} == {"chunk"}
    return [json.loads(base64.b64decode(json.loads(frame.payload)["bytes"])) for frame in frames]


def test_every_event_of_the_inner_stream_is_one_chunk() -> None:
    stream = invoke(stream=True).stream(answer())
    data = stream.open() + b"".join(map(stream.feed, EVENTS))
    assert chunks_of(data) == [event["data"] for event in parse(stream_bytes(EVENTS))]


def test_a_ping_is_a_chunk_too() -> None:
    assert chunks_of(invoke(stream=True).stream(answer()).ping()) == [{"type": "ping"}]


@pytest.mark.parametrize("as_event", [True, False])
@pytest.mark.parametrize("middle", [[], [TextDelta("so")], call("toolu_1")])
def test_e7_a_failure_is_told_in_both_tongues(middle: list[Event], as_event: bool) -> None:
    """Claude Code resumes after Anthropic's error and gives up after Amazon's; boto3 sees only Amazon's."""
    error = UpstreamError("high demand", kind="overloaded")
    stream = invoke(stream=True).stream(answer())
    data = stream.open() + b"".join(map(stream.feed, middle))
    data += stream.feed(Failed(error)) if as_event else stream.fail(error)
    *before, last = frames_of(data)
    said = [json.loads(base64.b64decode(json.loads(frame.payload)["bytes"])) for frame in before]
    told = {"type": "overloaded_error", "message": "high demand"}
    assert said[-1] == {"type": "error", "error": told}
    assert (said[-2]["type"] == "content_block_stop") == bool(middle)
    assert last.headers[":exception-type"] == "serviceUnavailableException"
    assert json.loads(last.payload) == {"message": "high demand"}


def test_a_whole_answer_is_the_inner_ones() -> None:
    response = collect(EVENTS)
    assert invoke().encode_response(response, answer()) == INNER.encode_response(response, answer())


def test_the_wrapper_says_what_it_is() -> None:
    client = invoke(stream=True)
    assert (client.name, client.stream_type, client.id_header) == ("bedrock", STREAM_TYPE, "x-amzn-requestid")
    assert (client.call_prefix, client.message_prefix) == (INNER.call_prefix, INNER.message_prefix)
    assert client.encode_count(5) == b'{"inputTokens":5}'


def count(given: Any) -> Any:
    return CountClient(INNER, MODEL).decode_request(encoded(given), {}).request


def test_tokens_of_a_converse_request() -> None:
    found = count({"input": {"converse": {"messages": [user("hi")], "system": [{"text": "s"}]}}})
    assert (found.model, len(found.messages), len(found.system)) == (MODEL, 1, 1)


def test_tokens_of_an_invoke_request() -> None:
    inner = base64.b64encode(encoded(ASKED)).decode()
    found = count({"input": {"invokeModel": {"body": inner}}})
    assert found == INNER.decode_request(encoded({**ASKED, "model": MODEL}), {}).request


def test_the_count_is_told_in_amazons_words() -> None:
    client = CountClient(INNER, MODEL)
    assert client.encode_count(7) == b'{"inputTokens":7}'
    assert json.loads(client.encode_error(DragomanError("no")).body) == {"message": "no"}


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({}, ""),
        ({"input": {}}, "input"),
        ({"input": {"hologram": {}}}, "input.hologram"),
        ({"input": {"converse": {}}}, "input.converse.messages"),
        (
            {"input": {"converse": {"messages": [{"role": "user", "content": [{"x": 1}]}]}}},
            "input.converse.messages[0].content[0]",
        ),
        ({"input": {"converse": 5}}, "input.converse"),
        ({"input": {"invokeModel": {}}}, "input.invokeModel"),
        ({"input": {"invokeModel": {"body": 5}}}, "input.invokeModel.body"),
        ({"input": {"invokeModel": {"body": "!"}}}, "input.invokeModel.body"),
        ({"input": {"invokeModel": {"body": "é"}}}, "input.invokeModel.body"),
        ({"input": {"invokeModel": {"body": "e30="}}}, "input.invokeModel.body"),
        (
            {"input": {"invokeModel": {"body": base64.b64encode(encoded({"messages": []})).decode()}}},
            "input.invokeModel.body.messages",
        ),
    ],
)
def test_a_wrong_question_is_refused_at_its_place(given: Json, where: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        count(given)
    assert caught.value.where == where
