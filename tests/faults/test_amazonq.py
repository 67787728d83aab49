"""Clients of Amazon's at the gateway's door: three forms of one protocol, control calls, failures early and late."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import msgspec
import pytest

from tests.corpus.amazonq_adapter import parse_frames
from tests.faults.harness import HELLO, KEY, FakeGoogle, Running, chunk, gateway, refuses, streams
from tests.unit.dialects.amazonq.builders import assistant, result, results, tool, use, user, with_tools
from tests.unit.dialects.amazonq.strict_reader import Reading, read

Json = dict[str, Any]
Act = Callable[[asyncio.StreamWriter], Awaitable[None]]

AWS_JSON = "application/x-amz-json-1.0"
GENERATE = "AmazonCodeWhispererStreamingService.GenerateAssistantResponse"
CALL = chunk(
    {"functionCall": {"name": "fs_read", "args": {"path": "a"}, "id": "g1"}, "thoughtSignature": "c2ln"},
    finish="STOP",
)
ONCE = {"max_attempts": 1}


def state(*messages: Json, conversation_id: str | None = "c-1", **more: Any) -> Json:
    *history, current = messages or (user("hi"),)
    about = {"conversationId": conversation_id, "history": history, "currentMessage": current}
    return {"conversationState": about, **more}


class Answer(msgspec.Struct):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def reading(self) -> Reading:
        return read(self.body)


async def ask(
    running: Running,
    path: str = "/",
    body: Json | None = None,
    *,
    target: str = "",
    method: str = "POST",
    headers: dict[str, str] | None = None,
) -> Answer:
    sent = dict(running.headers if headers is None else headers)
    sent["content-type"] = AWS_JSON if target else "application/json"
    if target:
        sent["x-amz-target"] = target
    data = json.dumps(body if body is not None else state()).encode() if method != "GET" else None
    async with running.session.request(method, running.url + path, data=data, headers=sent) as response:
        return Answer(
            response.status,
            {key.lower(): value for key, value in response.headers.items()},
            await response.read(),
        )


FORMS = [
    ("/", GENERATE),
    ("/", "AmazonQDeveloperStreamingService.SendMessage"),
    ("/?origin=KIRO_CLI", GENERATE),
    ("/", "KiroRuntimeService.GenerateAssistantResponse"),
    ("/", "GenerateAssistantResponse"),
    ("/generateAssistantResponse", ""),
    ("/SendMessageStreaming", ""),
    ("/sendmessagestreaming", ""),
]


@pytest.mark.parametrize(("path", "target"), FORMS)
async def test_every_form_of_the_protocol_gets_its_answer(path: str, target: str) -> None:
    google = FakeGoogle(streams(HELLO))
    async with gateway(google) as running:
        answer = await ask(running, path, state(user("hi", modelId="claude-sonnet-4")), target=target)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/vnd.amazon.eventstream")
    assert answer.headers["x-amzn-requestid"] == answer.headers["x-dragoman-request-id"]
    assert answer.headers["x-amzn-codewhisperer-conversation-id"] == "c-1"
    found = answer.reading
    assert (found.text, found.stop_reason, found.conversation_id) == ("Hello", "END_TURN", "c-1")
    assert google.arrived[0].path == "/v1beta/models/gemini-flash-latest:streamGenerateContent?alt=sse"
    assert google.arrived[0].headers["x-goog-api-key"].startswith("AIza")


@pytest.mark.parametrize(("path", "target"), FORMS)
async def test_the_key_may_stand_in_the_address_beside_a_login_of_amazons(path: str, target: str) -> None:
    google = FakeGoogle(streams(HELLO))
    login = {"authorization": "Bearer aoaAAAA-a-login", "tokentype": "API_KEY"}
    async with gateway(google) as running:
        answer = await ask(running, f"/key/{KEY}{path}", target=target, headers=login)
        listed = await ask(running, f"/key/{KEY}/ListAvailableModels?origin=IDE", method="GET", headers=login)
    assert (answer.reading.text, listed.status) == ("Hello", 200)
    assert "aoaAAAA" not in str(google.arrived[0].headers)


async def test_a_conversation_without_a_name_is_named_for_the_client_to_keep() -> None:
    async with gateway(FakeGoogle(streams(HELLO))) as running:
        answers = [
            await ask(running, "/generateAssistantResponse", state(conversation_id=None)) for _ in range(2)
        ]
    names = [answer.headers["x-amzn-codewhisperer-conversation-id"] for answer in answers]
    assert [answer.reading.conversation_id for answer in answers] == names
    assert len(set(names)) == 2
    assert all(re.fullmatch(r"[0-9a-f-]{36}", name) for name in names)


@pytest.mark.parametrize(
    ("given", "model"),
    [
        ("claude-sonnet-4", "gemini-flash-latest"),
        ("CLAUDE_SONNET_4_20250514_V1_0", "gemini-flash-latest"),
        ("claude-opus-4.6", "gemini-pro-latest"),
        ("auto", "gemini-flash-latest"),
        (None, "gemini-flash-latest"),
        (
            "arn:aws:bedrock:us-east-1::inference-profile/us.anthropic.claude-haiku",
            "gemini-flash-lite-latest",
        ),
        ("gemini-3.8-flash", "gemini-3.8-flash"),
    ],
)
async def test_m1_every_model_is_some_model(given: str | None, model: str) -> None:
    async with gateway(FakeGoogle(streams(HELLO))) as running:
        answer = await ask(running, body=state(user("hi", modelId=given)), target=GENERATE)
    assert answer.headers["x-dragoman-model"] == model


async def test_a1_a_signature_is_found_again_by_the_id_of_the_tool_use() -> None:
    google = FakeGoogle(streams(CALL), streams(HELLO))
    async with gateway(google) as running:
        asked = with_tools(tool("fs_read", {"type": "object"}))
        first = (await ask(running, body=state(asked), target=GENERATE)).reading
        (used,) = first.tools
        again = results(result({"json": {"ok": True}}, identity=used.id))
        turn = state(user("hi"), assistant("", use(used.id, used.name, input=used.input)), again)
        await ask(running, body=turn, target=GENERATE)
    (call,) = google.arrived[1].body["contents"][1]["parts"]
    assert call["thoughtSignature"] == "c2ln"
    (answered,) = google.arrived[1].body["contents"][2]["parts"]
    assert answered["functionResponse"]["name"] == "fs_read"


CONTROL = {
    "GetProfile": {"profile"},
    "ListAvailableModels": {"models", "defaultModel"},
    "ListAvailableProfiles": {"profiles"},
    "SendTelemetryEvent": set(),
    "GetUsageLimits": {"limits", "usageBreakdownList", "daysUntilReset"},
    "CreateSubscriptionToken": {"status"},
    "ListAvailableCustomizations": {"customizations"},
    "ListFeatureEvaluations": {"featureEvaluations"},
    "GetFeatureConfiguration": set(),
    "InvokeMCP": {"jsonrpc", "id", "result"},
}


async def test_control_calls_are_answered_in_every_form_without_asking_google() -> None:
    google = FakeGoogle(streams(HELLO))
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "origin": "CLI"}
    async with gateway(google) as running:
        for operation, members in CONTROL.items():
            for prefix in (
                "AmazonCodeWhispererService",
                "KiroControlPlaneBearerService",
                "KiroRuntimeService",
            ):
                answer = await ask(running, body=body, target=f"{prefix}.{operation}")
                assert (operation, answer.status, answer.json.keys()) == (operation, 200, members)
            lowered = operation[0].lower() + operation[1:]
            for path in (f"/{operation}", f"/{lowered}?origin=IDE&maxResults=10", f"/{operation.upper()}"):
                for method in ("POST",) if operation == "InvokeMCP" else ("POST", "PUT", "GET"):
                    answer = await ask(running, path, body, method=method)
                    assert (path, answer.status, answer.json.keys()) == (path, 200, members)
                    assert answer.headers["x-amzn-requestid"]
    assert google.arrived == []


async def test_f7_models_are_listed_with_their_real_limits() -> None:
    async with gateway(FakeGoogle()) as running:
        answer = await ask(running, body={}, target="AmazonCodeWhispererService.ListAvailableModels")
    listed = {model["modelId"]: model for model in answer.json["models"]}
    assert answer.json["defaultModel"] == listed["gemini-flash-latest"]
    assert listed["gemini-3.8-flash"]["tokenLimits"] == {
        "maxInputTokens": 1_048_576,
        "maxOutputTokens": 65_536,
    }
    assert listed["gemini-3.8-flash"]["supportedInputTypes"] == ["TEXT", "IMAGE"]
    assert "nextToken" not in answer.json


@pytest.mark.parametrize(
    ("path", "target", "headers"),
    [
        ("/", "AmazonCodeWhispererService.StartTaskAssist", {}),
        ("/", "DynamoDB_20120810.ListTables", {}),
        ("/StartTaskAssist", "", {"amz-sdk-invocation-id": "x"}),
    ],
)
async def test_an_unknown_operation_is_never_tried_again(
    path: str, target: str, headers: dict[str, str]
) -> None:
    """A 5xx would be repeated three to nine times by the SDKs."""
    async with gateway(FakeGoogle()) as running:
        answer = await ask(running, path, {}, target=target, headers={**running.headers, **headers})
    assert (answer.status, answer.headers["x-amzn-errortype"]) == (404, "UnknownOperationException")
    assert answer.json["__type"] == "UnknownOperationException"
    assert answer.headers["x-amzn-requestid"]


@pytest.mark.parametrize("path", ["/generateAssistantResponse", "/sendmessagestreaming"])
async def test_an_operation_with_the_wrong_method_is_refused_in_amazons_words(path: str) -> None:
    async with gateway(FakeGoogle()) as running:
        answer = await ask(running, path, {}, method="PUT")
    assert (answer.status, answer.json["__type"]) == (405, "UnknownOperationException")
    assert (answer.headers["allow"], answer.headers["x-amzn-errortype"]) == (
        "POST",
        "UnknownOperationException",
    )


@pytest.mark.parametrize(
    ("path", "target"), [*FORMS, ("/ListAvailableModels", ""), ("/", "X.GetProfile"), ("/", "X.Y")]
)
async def test_q5_nobody_comes_in_without_the_key(path: str, target: str) -> None:
    google = FakeGoogle(streams(HELLO))
    async with gateway(google) as running:
        for headers in ({}, {"authorization": "Bearer aoaAAAA"}):
            answer = await ask(running, path, target=target, headers=headers)
            assert (answer.status, answer.json["__type"]) == (403, "AccessDeniedException")
            assert answer.headers["x-amzn-errortype"] == "AccessDeniedException"
    assert google.arrived == []


async def test_a_greeting_is_still_a_greeting() -> None:
    async with gateway(FakeGoogle()) as running:
        assert (await ask(running, "/", method="GET", headers={})).json["service"] == "dragoman"
        assert (await ask(running, "/", {})).status == 405


def later(act: Act, wait_s: float) -> Act:
    async def act_later(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(wait_s)
        await act(writer)

    return act_later


async def hang_up(writer: asyncio.StreamWriter) -> None:
    """No answer at all: another model would help nobody."""
    writer.close()


OVERFLOW = "The input token count (9) exceeds the maximum number of tokens allowed (8)."


async def test_h4_an_overflow_is_a_status_even_if_google_takes_its_time() -> None:
    """Only a 400 with these words makes the clients compact; inside a stream it would end the conversation."""
    async with gateway(FakeGoogle(later(refuses(400, OVERFLOW), 0.6))) as running:
        answer = await ask(running, target=GENERATE)
    assert answer.status == 400
    assert answer.body == (
        b'{"__type":"ValidationException","message":"Input is too long.",'
        b'"reason":"CONTENT_LENGTH_EXCEEDS_THRESHOLD"}'
    )


@pytest.mark.parametrize(
    ("refusal", "status", "kind", "reason"),
    [
        (refuses(429, "slow down"), 429, "ThrottlingException", None),
        (refuses(503, "busy"), 429, "ThrottlingException", "INSUFFICIENT_MODEL_CAPACITY"),
        (refuses(500, "oops"), 429, "ThrottlingException", "INSUFFICIENT_MODEL_CAPACITY"),
        (refuses(404, "no such model"), 400, "ValidationException", "INVALID_MODEL_ID"),
        (refuses(400, "bad"), 400, "ValidationException", "REQUEST_BODY_INVALID"),
        (refuses(403, "no"), 403, "AccessDeniedException", None),
        (refuses(429, "limit: 0"), 402, "ServiceQuotaExceededException", "MONTHLY_REQUEST_COUNT"),
        (refuses(504, "late"), 503, "ServiceUnavailableException", None),
        (hang_up, 503, "ServiceUnavailableException", None),
    ],
)
async def test_refusals_before_the_stream(refusal: Any, status: int, kind: str, reason: str | None) -> None:
    async with gateway(FakeGoogle(refusal), upstream=ONCE) as running:
        answer = await ask(running, target=GENERATE)
    assert (answer.status, answer.headers["x-amzn-errortype"]) == (status, kind)
    assert (answer.json["__type"], answer.json.get("reason")) == (kind, reason)


@pytest.mark.parametrize(
    ("raw", "place"),
    [
        (b"{", ""),
        (b'{"conversationState":{"currentMessage":{}}}', "conversationState.currentMessage"),
        (
            json.dumps(
                state(user("x", documents=[{"format": "docx", "source": {"bytes": "AA=="}}]))
            ).encode(),
            "docx",
        ),
    ],
)
async def test_n7_a_bad_request_is_told_with_its_place(raw: bytes, place: str) -> None:
    async with gateway(FakeGoogle()) as running:
        headers = {**running.headers, "content-type": AWS_JSON, "x-amz-target": GENERATE}
        async with running.session.post(running.url, data=raw, headers=headers) as response:
            told = await response.json()
    assert (response.status, told["__type"]) == (400, "ValidationException")
    assert place in told["message"]


@pytest.mark.parametrize(
    ("target", "name"),
    [(GENERATE, "error"), ("KiroRuntimeService.GenerateAssistantResponse", "throttlingError")],
)
async def test_e_a_failure_behind_the_200_is_an_exception(target: str, name: str) -> None:
    broken = streams(chunk({"text": "Hel"}), b'data: {"error":{"code":503,"message":"busy"}}\r\n\r\n')
    async with gateway(FakeGoogle(broken)) as running:
        found = (await ask(running, target=target)).reading
    assert (found.text, found.failure, found.complaint["message"]) == ("Hel", name, "busy")


async def test_e_an_answer_that_is_cut_is_an_exception() -> None:
    async with gateway(FakeGoogle(streams(chunk({"text": "Hel"}), cut=True))) as running:
        found = (await ask(running, target=GENERATE)).reading
    assert (found.text, found.failure) == ("Hel", "error")


async def test_e4_a_quiet_line_is_kept_alive_outside_of_tools() -> None:
    slow = streams(chunk({"text": "a"}), CALL, pause_s=0.4)
    async with gateway(FakeGoogle(slow), server={"ping_s": 0.1}) as running:
        answer = await ask(running, target=GENERATE)
    kinds = [kind for kind, _ in parse_frames(answer.body)]
    assert "ping" in kinds
    assert answer.reading.calls == [("fs_read", {"path": "a"})]


async def test_q_web_pages_cannot_send_amazons_content_type_either() -> None:
    async with gateway(FakeGoogle(streams(HELLO))) as running:
        page = {**running.headers, "origin": "https://evil.example"}
        answer = await ask(running, target=GENERATE, headers=page)
        assert (answer.status, answer.json["__type"]) == (403, "AccessDeniedException")
        headers = {**running.headers, "x-amz-target": GENERATE, "content-type": "text/plain"}
        async with running.session.post(running.url, data=b"{}", headers=headers) as response:
            assert response.status == 400
            assert (await response.json())["__type"] == "ValidationException"


async def test_http_clients_of_every_kind_get_chunks_as_they_come() -> None:
    """The first words arrive while Google is still speaking."""
    slow = streams(chunk({"text": "a"}), chunk({"text": "b"}, finish="STOP"), pause_s=0.5)
    async with gateway(FakeGoogle(slow)) as running:
        headers = {**running.headers, "content-type": AWS_JSON, "x-amz-target": GENERATE}
        response: aiohttp.ClientResponse
        async with running.session.post(running.url, json=state(), headers=headers) as response:
            first = await response.content.readany()
            rest = await response.content.read()
    assert [kind for kind, _ in parse_frames(first)] == ["messageMetadataEvent", "assistantResponseEvent"]
    assert read(first + rest).text == "ab"
