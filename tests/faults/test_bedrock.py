"""Bedrock's clients at the real door: what fails upstream is told in Amazon's words, before a stream and inside it."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import aiohttp
import pytest
from yarl import URL

from dragoman.http.aws_eventstream import STREAM_TYPE
from tests.faults.harness import (
    HELLO,
    KEY,
    MALFORMED,
    FakeGoogle,
    Running,
    answers,
    chunk,
    gateway,
    refuses,
    streams,
)
from tests.unit.dialects.bedrock.grammar import Told, frames_of, read_stream

Json = dict[str, Any]

MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
ARN = f"arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2F{MODEL.replace(':', '%3A')}"
ASK: Json = {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}
INVOKE: Json = {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
QUICK = {"max_wait_s": 0.0, "max_attempts": 1}


async def post(running: Running, method: str, body: Json = ASK, **headers: str) -> aiohttp.ClientResponse:
    url = URL(f"{running.url}/model/{ARN}/{method}", encoded=True)
    return await running.session.post(url, json=body, headers={**running.headers, **headers})


async def told(response: aiohttp.ClientResponse) -> Told:
    assert (response.status, response.content_type) == (200, STREAM_TYPE)
    return read_stream(await response.read())


async def test_an_arn_with_slashes_leads_to_its_model() -> None:
    google = FakeGoogle(streams(HELLO))
    async with gateway(google) as running:
        response = await post(running, "converse-stream")
        assert (await told(response)).content == [{"text": "Hello"}]
    assert response.headers["x-amzn-requestid"] == response.headers["x-dragoman-request-id"]
    assert response.headers["x-dragoman-model"] == "gemini-flash-latest"
    assert google.arrived[0].path.startswith("/v1beta/models/gemini-flash-latest:streamGenerateContent")


@pytest.mark.parametrize("method", ["converse", "converse-stream", "invoke", "invoke-with-response-stream"])
@pytest.mark.parametrize(
    ("refusal", "status", "name"),
    [
        (refuses(429, "slow down"), 429, "ThrottlingException"),
        (refuses(503, "overloaded"), 503, "ServiceUnavailableException"),
        (refuses(500, "oops"), 500, "InternalServerException"),
        (refuses(403, "not yours"), 403, "AccessDeniedException"),
        (refuses(404, "no such model"), 404, "ResourceNotFoundException"),
        (refuses(400, "bad"), 400, "ValidationException"),
    ],
)
async def test_l7_a_refusal_of_googles_is_amazons(method: str, refusal: Any, status: int, name: str) -> None:
    async with gateway(FakeGoogle(refusal), upstream=QUICK) as running:
        response = await post(running, method, INVOKE if "invoke" in method else ASK)
        found = await response.json()
    assert (response.status, response.headers["x-amzn-errortype"]) == (status, name)
    assert found["message"]


async def test_l1_the_wait_google_asks_for_is_told() -> None:
    details = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}
    async with gateway(FakeGoogle(refuses(429, "slow down", details)), upstream=QUICK) as running:
        response = await post(running, "converse")
    assert (response.status, response.headers["retry-after"]) == (429, "7")


async def test_h4_overflow_is_a_400_that_makes_clients_compact() -> None:
    message = "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576)."
    async with gateway(FakeGoogle(refuses(400, message))) as running:
        response = await post(running, "converse")
        found = await response.json()
    assert response.status == 400
    assert found == {"message": "prompt is too long: 2000000 tokens > 1048576 maximum"}


@pytest.mark.parametrize(
    "broken",
    [
        streams(chunk({"text": "Hel"}), cut=True),
        streams(chunk({"text": "Hel"})),
        streams(chunk({"text": "Hel"}), b'data: {"error":{"code":503,"message":"x"}}\r\n\r\n'),
        streams(chunk({"text": "Hel"}), MALFORMED),
    ],
    ids=["cut", "no end", "an error inside", "malformed"],
)
async def test_e7_a_stream_that_breaks_ends_in_an_exception(broken: Any) -> None:
    async with gateway(FakeGoogle(broken), upstream=QUICK) as running:
        found = await told(await post(running, "converse-stream"))
    assert found.content == [{"text": "Hel"}]
    assert found.failure is not None
    assert found.failure[0] == "serviceUnavailableException"


async def test_e7_an_invoked_stream_that_breaks_tells_both() -> None:
    async with gateway(FakeGoogle(streams(chunk({"text": "Hel"}), cut=True)), upstream=QUICK) as running:
        response = await post(running, "invoke-with-response-stream", INVOKE)
        *before, last = frames_of(await response.read())
    said = [json.loads(base64.b64decode(json.loads(frame.payload)["bytes"])) for frame in before]
    assert [event["type"] for event in said][-2:] == ["content_block_stop", "error"]
    assert last.headers[":exception-type"] == "serviceUnavailableException"


async def test_l3_a_refusal_that_takes_its_time_is_still_a_status() -> None:
    """boto3 and aws-sdk-js try a status again, but no exception inside a stream."""

    async def late(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.6)
        await refuses(429, "slow down")(writer)

    async with gateway(FakeGoogle(late), upstream=QUICK) as running:
        response = await post(running, "converse-stream")
    assert (response.status, response.headers["x-amzn-errortype"]) == (429, "ThrottlingException")


async def test_heartbeats_keep_a_silent_stream_alive() -> None:
    """boto3 gives up after a minute of silence."""
    slow = streams(chunk({"text": "Hel"}), chunk({"text": "lo"}), chunk(finish="STOP"), pause_s=0.4)
    async with gateway(FakeGoogle(slow), server={"ping_s": 0.05}) as running:
        found = await told(await post(running, "converse-stream"))
    assert found.content == [{"text": "Hello"}]
    assert found.pings > 0
    assert found.stop == {"stopReason": "end_turn"}


async def test_an_empty_answer_is_tried_again_before_anything_is_said() -> None:
    empty = streams(chunk({"text": ""}, finish="STOP"))
    google = FakeGoogle(empty, streams(HELLO))
    async with gateway(google) as running:
        assert (await told(await post(running, "converse-stream"))).content == [{"text": "Hello"}]
    assert len(google.arrived) == 2


async def test_tokens_are_googles_or_our_estimate() -> None:
    body = {"input": {"converse": ASK}}
    async with gateway(FakeGoogle(answers({"totalTokens": 31}), refuses(500))) as running:
        counted = await post(running, "count-tokens", body)
        estimated = await post(running, "count-tokens", body)
        assert await counted.json() == {"inputTokens": 31}
        assert (await estimated.json())["inputTokens"] > 0
    assert estimated.headers["x-dragoman-count"] == "estimate"


async def test_a_stranger_is_told_so_in_amazons_words() -> None:
    google = FakeGoogle(streams(HELLO))
    async with gateway(google) as running:
        response = await post(running, "converse", authorization="Bearer not-the-key-0000000000")
    assert (response.status, response.headers["x-amzn-errortype"]) == (403, "AccessDeniedException")
    assert google.arrived == []


@pytest.mark.parametrize("kind", ["", "application/octet-stream"])
async def test_bytes_of_no_named_type_are_read_as_json(kind: str) -> None:
    """boto3 names none for InvokeModel, aws-sdk-js says that they are bytes."""
    async with gateway(FakeGoogle(streams(HELLO))) as running:
        headers = {**running.headers, **({"content-type": kind} if kind else {})}
        async with running.session.post(
            f"{running.url}/model/m/invoke-with-response-stream",
            data=json.dumps(INVOKE).encode(),
            headers=headers,
            skip_auto_headers=["content-type"],
        ) as response:
            assert response.status == 200
            assert response.headers["x-amzn-bedrock-content-type"] == "application/json"


@pytest.mark.parametrize(
    ("verb", "path", "status"),
    [
        ("POST", "/model/m/hologram", 404),
        ("POST", "/model//converse", 404),
        ("GET", "/model/m/converse", 405),
        ("POST", "/inference-profiles", 405),
        ("GET", "/inference-profiles/us.anthropic.claude-x", 200),
        ("GET", "/foundation-models/google.gemini-3.8-flash", 200),
    ],
)
async def test_paths_that_are_none_are_refused_in_amazons_words(verb: str, path: str, status: int) -> None:
    async with gateway(FakeGoogle(streams(HELLO))) as running:
        response = await running.session.request(verb, running.url + path, headers=running.headers)
        assert response.status == status
        assert ("x-amzn-errortype" in response.headers) == (status != 200)
        assert response.headers["x-amzn-requestid"]
        assert KEY not in await response.text()
