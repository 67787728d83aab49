"""The door for Amazon's clients: a signature opens it, a stranger's body is bounded, and no proof leaves a trace."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest

from dragoman.gateway.request import RequestContext
from dragoman.gateway.response_writer import ResponseWriter
from dragoman.gateway.routes import _EXACT_ROUTES, Route, empty_object
from tests.faults.harness import GOOGLE_KEY, HELLO, KEY, FakeGoogle, Running, answers, chunk, gateway, streams
from tests.unit.gateway.auth.botocore_requests import headers_of, signed

ASK = json.dumps(
    {
        "model": "claude-sonnet-4-5",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
    }
).encode()
JSON = [("Content-Type", "application/json")]
TOKEN = "the-session-token-of-a-real-login"


def ask(
    running: Running,
    target: str = "/v1/messages",
    body: bytes = ASK,
    *,
    sent: bytes | None = None,
    drop: tuple[str, ...] = (),
    late_s: float = 0,
    **options: Any,
) -> tuple[int, str]:
    """Sign with botocore, send exactly that; the status and the text of the answer."""
    at = datetime.now(UTC) - timedelta(seconds=late_s)
    head = signed(url=running.url + target, body=body, at=at, **{"secret": KEY, "headers": JSON, **options})
    headers = {name: value for name, value in headers_of(head).items() if name not in drop}
    connection = http.client.HTTPConnection(urlsplit(running.url).netloc, timeout=30)
    try:
        connection.request(head.method, target, sent if sent is not None else body, headers)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


async def test_a_signed_request_is_served_and_nothing_of_its_proof_goes_to_google() -> None:
    google = FakeGoogle(streams(HELLO))
    async with gateway(google) as running:
        status, text = await asyncio.to_thread(ask, running, token=TOKEN, access_key="AKIDNAMED")
    assert (status, "Hello" in text) == (200, True)
    [arrived] = google.arrived
    assert arrived.headers["x-goog-api-key"] == GOOGLE_KEY
    assert not {name for name in arrived.headers if name.startswith("x-amz") or name == "authorization"}
    wire = repr((arrived.path, arrived.headers, arrived.body))
    assert not any(secret in wire for secret in (KEY, TOKEN, "AKIDNAMED", "AWS4-HMAC"))


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        pytest.param(
            {"secret": "another secret"}, 401, "secret access key must be the gateway key", id="secret"
        ),
        pytest.param({"sent": ASK + b" "}, 401, "does not fit", id="body"),
        pytest.param({"late_s": 1000}, 401, "more than 15 minutes apart", id="clock"),
        pytest.param({"late_s": -1000}, 401, "more than 15 minutes apart", id="clock ahead"),
        pytest.param({"drop": ("x-amz-date",)}, 401, "needs its time", id="no date"),
        pytest.param({"drop": ("authorization",)}, 401, "a gateway key is needed", id="no signature"),
        pytest.param(
            {"target": "/v1/messages?X-Amz-Signature=0", "drop": ("authorization",)},
            401,
            "presigned",
            id="presigned",
        ),
        pytest.param(
            {"headers": [("Content-Type", "text/plain")]}, 400, "must be application/json", id="q8 type"
        ),
        pytest.param(
            {"headers": [*JSON, ("Origin", "https://evil.example")]}, 403, "web pages", id="q7 page"
        ),
    ],
)
async def test_q_strangers_with_signatures_are_turned_away(
    options: dict[str, Any], status: int, words: str
) -> None:
    google = FakeGoogle(streams(HELLO))
    async with gateway(google) as running:
        got, text = await asyncio.to_thread(ask, running, **options)
    assert (got, words in text) == (status, True), text
    assert google.arrived == []


async def test_a_percent_encoded_path_is_verified_as_it_was_sent() -> None:
    target = "/v1beta/models/gemini-3.8-flash%3AstreamGenerateContent?key=&alt=sse"
    body = json.dumps({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}).encode()
    async with gateway(FakeGoogle(streams(HELLO))) as running:
        assert (await asyncio.to_thread(ask, running, target, body))[0] == 200
        assert (await asyncio.to_thread(ask, running, target, body, secret="wrong"))[0] == 401


async def test_a_request_without_a_body_is_proven_by_its_head() -> None:
    async with gateway(FakeGoogle(streams(HELLO))) as running:
        get: dict[str, Any] = {"method": "GET", "body": b"", "headers": []}
        assert (await asyncio.to_thread(ask, running, "/v1/models?limit=5", **get))[0] == 200
        assert (await asyncio.to_thread(ask, running, "/v1/models?limit=5", **get, secret="wrong"))[0] == 401


async def test_amazons_content_types_and_none_at_all_are_taken() -> None:
    async with gateway(FakeGoogle(streams(HELLO))) as running:
        for headers in ([("Content-Type", "application/x-amz-json-1.0")], []):
            assert (await asyncio.to_thread(ask, running, headers=headers))[0] == 200
        status, text = await asyncio.to_thread(ask, running, body=b"", headers=[])
    assert (status, "content type" in text) == (400, False)  # let in, and then it is no message


async def test_a_signer_is_the_bearer_of_the_same_key() -> None:
    """What was kept for one of them, the other finds; another key's owner does not."""
    other = "dgm-another-key-of-sufficient-length"
    google = FakeGoogle(answers(json.loads(chunk({"text": "Hello!"}, finish="STOP")[6:])))
    async with gateway(google, keys=(KEY, other)) as running:
        first = await running.post(
            "/v1/responses", model="gemini-3.8-flash", input="mine", conversation="demo"
        )
        assert first.status == 200
        again = json.dumps({"model": "gemini-3.8-flash", "input": "more", "conversation": "demo"}).encode()
        for secret in (other, KEY):
            assert (await asyncio.to_thread(ask, running, "/v1/responses", again, secret=secret))[0] == 200
    stranger, same = (
        [part["parts"][0]["text"] for part in arrived.body["contents"]] for arrived in google.arrived[1:]
    )
    assert stranger == ["more"]
    assert same == ["mine", "Hello!", "more"]


# What leaves a trace


async def test_no_proof_is_logged_whatever_happens(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    logging.getLogger("botocore").setLevel(logging.WARNING)  # the signer's side of the test
    async with gateway(FakeGoogle(streams(HELLO))) as running:
        answers_seen = [await asyncio.to_thread(ask, running, token=TOKEN)]
        answers_seen.append(await asyncio.to_thread(ask, running, token=TOKEN, secret="secret-that-is-wrong"))
        answers_seen.append(await asyncio.to_thread(ask, running, token=TOKEN, drop=("x-amz-date",)))
        monkeypatch.setattr(running.app.gateway, "target", lambda *_: 1 / 0)
        answers_seen.append(await asyncio.to_thread(ask, running, token=TOKEN))
    assert [status for status, _ in answers_seen] == [200, 401, 401, 500]
    printed = capfd.readouterr()
    said = caplog.text + printed.out + printed.err
    assert "ZeroDivisionError" in said  # it is the log
    for text in (said, *(answer for _, answer in answers_seen)):
        for secret in (TOKEN, KEY, "secret-that-is-wrong", "AWS4-HMAC", "Signature=", "AKIDEXAMPLE"):
            assert secret not in text


async def test_nothing_behind_the_gate_sees_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, str]] = []

    async def spy(call: RequestContext, outlet: ResponseWriter) -> None:
        seen.append({**call.headers, **call.query, "path": call.path})
        await empty_object(call, outlet)

    monkeypatch.setitem(_EXACT_ROUTES, ("POST", "/v1/messages"), Route(spy, "anthropic"))
    async with gateway(FakeGoogle(streams(HELLO))) as running:
        assert (await asyncio.to_thread(ask, running, token=TOKEN))[0] == 200
        assert (await running.post("/v1/messages")).status == 200
        async with running.session.post(running.url + "/v1/messages", json={}, headers={"x-api-key": KEY}):
            pass
        for address in (f"/key/{KEY}/v1/messages", f"/v1/messages?key={KEY}"):
            async with running.session.post(running.url + address, json={}):
                pass
    assert len(seen) == 5
    for headers in seen:
        assert not {"authorization", "x-api-key", "x-goog-api-key", "x-amz-security-token"} & headers.keys()
        assert KEY not in repr(headers)


# A stranger's body


async def send_head(
    running: Running, length: int, at: datetime | None = None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Only the head of a request that says it is signed by somebody."""
    url = f"{running.url}/v1/messages"
    head = signed(url=url, at=at or datetime.now(UTC), headers=JSON, secret="a stranger's")
    lines = [f"{name}: {value}" for name, value in headers_of(head).items()]
    text = "\r\n".join(["POST /v1/messages HTTP/1.1", *lines, f"content-length: {length}", "", ""])
    where = urlsplit(running.url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    writer.write(text.encode())
    await writer.drain()
    return reader, writer


async def status_of(reader: asyncio.StreamReader) -> int:
    return int((await asyncio.wait_for(reader.readline(), 30)).split()[1])


async def test_a_claim_that_cannot_be_true_is_answered_before_its_body_is_read() -> None:
    async with gateway(FakeGoogle(streams(HELLO))) as running:
        reader, writer = await send_head(running, 10_000_000, at=datetime(2020, 1, 1, tzinfo=UTC))
        assert await status_of(reader) == 401
        writer.close()


async def test_a_strangers_body_is_bounded_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.gateway.limits.bodies._UNAUTHENTICATED_TIMEOUT_S", 0.2)
    async with gateway(FakeGoogle(streams(HELLO))) as running:
        reader, writer = await send_head(running, 100)
        assert await status_of(reader) == 401
        writer.close()


async def test_a_strangers_body_is_bounded_in_size() -> None:
    async with gateway(FakeGoogle(streams(HELLO)), server={"max_body_bytes": 1_000}) as running:
        for secret in ("a stranger's", KEY):
            assert (await asyncio.to_thread(ask, running, body=b" " * 1_001, secret=secret))[0] == 413
        reader, writer = await send_head(running, 10**9)
        writer.write(b" " * 5_000)
        assert await status_of(reader) == 413
        writer.close()


async def test_all_strangers_together_cannot_fill_the_memory_and_hinder_no_bearer() -> None:
    limits = {"max_body_bytes": 1_000, "max_inflight_bytes": 16_000}
    async with gateway(FakeGoogle(streams(HELLO)), server=limits) as running:
        bodies = running.app._bodies
        strangers = [await send_head(running, 1_000) for _ in range(4)]
        for _, writer in strangers:
            writer.write(b" " * 990)
        while bodies._unauthenticated_budget.left_bytes > 40:
            await asyncio.sleep(0.01)
        assert (await asyncio.to_thread(ask, running))[0] == 529
        assert (await running.messages(tools=[])).status == 200
        for _, writer in strangers:
            writer.close()
        while bodies._unauthenticated_budget.left_bytes < 4_000:
            await asyncio.sleep(0.01)
        assert (await asyncio.to_thread(ask, running))[0] == 200
        assert bodies._unauthenticated_budget.left_bytes == 4_000


async def test_strangers_with_signatures_take_no_place_from_callers_with_keys() -> None:
    async with gateway(FakeGoogle(streams(HELLO)), server={"max_requests": 16}) as running:
        strangers = [await send_head(running, 100) for _ in range(20)]
        while len(running.app._unauthenticated) < 2:
            await asyncio.sleep(0.01)
        assert len(running.app._concurrency) == 0
        assert (await asyncio.to_thread(ask, running))[0] == 529  # who signs waits for the others who do
        assert (await running.messages(tools=[])).status == 200
        for _, writer in strangers:
            writer.close()
        while len(running.app._unauthenticated):
            await asyncio.sleep(0.01)
        assert (await asyncio.to_thread(ask, running))[0] == 200
        assert (len(running.app._unauthenticated), len(running.app._concurrency)) == (0, 0)
