"""Anthropic's own SDK for Bedrock reads the frames we wrap the Messages API in."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest
from anthropic import APIStatusError
from anthropic.lib.bedrock import AnthropicBedrock
from anthropic.types import Message

from dragoman.dialects import CLIENTS
from dragoman.dialects.bedrock import InvokeClient
from dragoman.errors import DragomanError, ErrorKind
from dragoman.http.aws_eventstream import STREAM_TYPE
from dragoman.ir import Event, collect
from tests.oracle.fake_boto3 import offline
from tests.oracle.test_anthropic_sdk import ENDINGS, USAGE, plain
from tests.unit.dialects.anthropic.stream_checks import answer
from tests.unit.dialects.anthropic.test_errors import TABLE as ANTHROPIC_ERRORS
from tests.unit.dialects.anthropic.test_stream import TABLE
from tests.unit.dialects.bedrock.test_errors import TABLE as ERRORS
from tests.unit.dialects.stream_checks import whole_stream

Json = dict[str, Any]

CLIENT = InvokeClient(CLIENTS["anthropic"], "m", stream=True)
ASK: Json = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"}]}


def answering(
    data: bytes, content_type: str = STREAM_TYPE, status: int = 200, **headers: str
) -> AnthropicBedrock:
    def handle(_request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, content=data, headers={"content-type": content_type, **headers})

    return AnthropicBedrock(
        base_url="http://gateway",
        aws_access_key="a",
        aws_secret_key="b",
        aws_region="us-east-1",
        max_retries=0,
        http_client=httpx2.Client(transport=httpx2.MockTransport(handle)),
    )


def stream_bytes(events: list[Event], *, pinging: bool = False) -> bytes:
    stream = CLIENT.stream(answer())
    return stream.open() + b"".join(
        (stream.ping() if pinging else b"") + stream.feed(event) for event in events
    )


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("finished", ENDINGS, ids=lambda finished: finished.raw)
@pytest.mark.parametrize("pinging", [False, True], ids=["", "with pings"])
def test_whole_and_streamed_are_the_same_message_to_the_sdk(name: str, finished: Any, pinging: bool) -> None:
    events = whole_stream(TABLE[name][0], finished, USAGE)
    whole_bytes = CLIENT.encode_response(collect(events), answer())
    created = answering(whole_bytes, "application/json").messages.create(**ASK)
    assert plain(created) == plain(Message.model_validate_json(whole_bytes))
    with answering(stream_bytes(events, pinging=pinging)).messages.stream(**ASK) as reading:
        assert plain(reading.get_final_message()) == plain(created)


@pytest.mark.parametrize("kind", ERRORS)
def test_e7_an_error_in_the_stream_is_raised_in_the_words_of_the_messages_api(kind: ErrorKind) -> None:
    stream = CLIENT.stream(answer())
    data = stream.open() + b"".join(map(stream.feed, TABLE["text"][0]))
    data += stream.fail(DragomanError("high demand", kind=kind))
    with answering(data).messages.stream(**ASK) as reading, pytest.raises(APIStatusError) as caught:
        reading.until_done()
    body: Any = caught.value.body
    assert body["error"] == {"type": ANTHROPIC_ERRORS[kind][1], "message": "high demand"}


@pytest.mark.parametrize("kind", ERRORS)
def test_e7_boto3_sees_amazons_exception_behind_it(kind: ErrorKind) -> None:
    stream = CLIENT.stream(answer())
    data = stream.open() + stream.fail(DragomanError("high demand", kind=kind))
    client = offline(lambda _: (200, {"content-type": STREAM_TYPE}, data))
    body = client.invoke_model_with_response_stream(modelId="m", body="{}")["body"]
    seen: list[Json] = []
    with pytest.raises(Exception, match="high demand") as caught:
        seen.extend(body)
    assert json.loads(seen[-1]["chunk"]["bytes"])["type"] == "error"
    told: Any = caught.value
    assert told.response["Error"]["Code"] == ERRORS[kind][2]


@pytest.mark.parametrize("kind", ERRORS)
def test_l7_the_sdk_raises_by_the_status_and_shows_the_message(kind: ErrorKind) -> None:
    reply = CLIENT.encode_error(DragomanError("what happened", kind=kind))
    headers = dict(reply.headers)
    failing = answering(reply.body, headers.pop("content-type"), reply.status, **headers)
    with pytest.raises(APIStatusError, match="what happened") as caught:
        failing.messages.create(**ASK)
    assert caught.value.status_code == ERRORS[kind][0]
