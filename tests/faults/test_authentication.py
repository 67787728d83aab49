"""Who gets in, and what is said to who does not."""

from __future__ import annotations

import asyncio
import logging
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.faults.harness import (
    GOOGLE_KEY,
    HELLO,
    KEY,
    FakeGoogle,
    Running,
    events_of,
    gateway,
    streams,
    text_of,
)

ASK = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 9,
    "messages": [{"role": "user", "content": "hi"}],
    "stream": True,
}


async def _ask(running: Running, headers: dict[str, str], **more: Any) -> tuple[int, Any]:
    async with running.session.post(
        running.url + "/v1/messages", json=ASK, headers=headers, **more
    ) as response:
        if response.content_type == "text/event-stream":
            return response.status, text_of(await events_of(response))
        return response.status, (await response.json())["error"]["type"]


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": f"Bearer {KEY}"},
        {"x-api-key": KEY},
        {"x-goog-api-key": KEY},
        {"authorization": f"bearer  {KEY}"},
        {"authorization": f"Bearer ksk_{KEY}", "tokentype": "API_KEY"},
    ],
)
async def test_n1_the_gateway_key_is_taken_in_every_header_clients_use(headers: dict[str, str]) -> None:
    google = FakeGoogle(streams(HELLO))
    async with gateway(google) as running:
        assert await _ask(running, headers) == (200, "Hello")
    assert google.arrived[0].headers["x-goog-api-key"] == GOOGLE_KEY
    assert KEY not in str(google.arrived[0].headers)
    assert "key=" not in google.arrived[0].path


@pytest.mark.parametrize("prefix", [f"/key/{KEY}", f"/key/{KEY}/", f"/key/{KEY.replace('-', '%252D')}"])
async def test_a_client_with_a_login_of_its_own_brings_the_key_in_the_address(prefix: str) -> None:
    google = FakeGoogle(streams(HELLO))
    login = {"authorization": "Bearer aoa-a-live-token-of-aws"}
    async with (
        gateway(google) as running,
        running.session.post(running.url + prefix + "/v1/messages", json=ASK, headers=login) as answer,
    ):
        assert (answer.status, text_of(await events_of(answer))) == (200, "Hello")
    assert google.arrived[0].headers["x-goog-api-key"] == GOOGLE_KEY
    assert "aoa-a-live" not in str(google.arrived[0])
    assert KEY not in str(google.arrived[0])


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"/key/{KEY[:-1]}/v1/models", 401),
        ("/key//v1/models", 401),
        (f"/key/{KEY}", 200),  # who is there is no secret
        (f"/key/{KEY}/nowhere", 404),
        (f"/key/{KEY}/_emulator/v1beta/models", 404),
    ],
)
async def test_an_address_opens_nothing_more_than_its_key(path: str, status: int) -> None:
    async with (
        gateway(FakeGoogle(streams(HELLO))) as running,
        running.session.get(running.url + path) as answer,
    ):
        assert answer.status == status
        assert KEY[:-1] not in await answer.text()


async def test_the_key_in_an_address_is_not_logged(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    logging.getLogger("aiohttp").setLevel(logging.WARNING)  # the client's side of the test
    async with gateway(FakeGoogle(streams(HELLO))) as running:
        monkeypatch.setattr(running.app.gateway, "target", lambda *_: 1 / 0)
        answer = await running.session.post(f"{running.url}/key/{KEY}/v1/messages", json=ASK)
        assert (answer.status, KEY in await answer.text()) == (500, False)
    printed = capfd.readouterr()
    said = caplog.text + printed.out + printed.err
    assert "ZeroDivisionError" in said
    assert KEY not in said


async def test_a_clients_own_google_key_is_passed_on_instead_of_ours() -> None:
    google = FakeGoogle(streams(HELLO))
    async with gateway(google) as running:
        assert await _ask(running, {"x-api-key": "AIza-somebody-elses"}) == (200, "Hello")
    assert google.arrived[0].headers["x-goog-api-key"] == "AIza-somebody-elses"


@pytest.mark.parametrize(
    ("server", "taken"),
    [
        ({}, True),
        ({"google_callers": "never"}, False),
        ({"host": "0.0.0.0"}, False),
        ({"host": "192.0.2.1"}, False),
        ({"host": "0.0.0.0", "google_callers": "always"}, True),
    ],
)
async def test_q10_a_google_key_of_ones_own_opens_a_gateway_of_this_machine_only(
    server: dict[str, Any], taken: bool
) -> None:
    """Anybody can have a Google key, and nobody but Google knows whether it is one."""
    google = FakeGoogle(streams(HELLO))
    async with gateway(google, server=server) as running:
        answer = await _ask(running, {"x-api-key": f"AIza{'x' * 35}"})
        assert answer == ((200, "Hello") if taken else (401, "authentication_error"))
        assert await _ask(running, {"x-api-key": KEY}) == (200, "Hello")
    assert len(google.arrived) == (2 if taken else 1)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param({}, (401, "authentication_error"), id="no key"),
        pytest.param({"x-api-key": KEY[:-1]}, (401, "authentication_error"), id="a prefix of the key"),
        pytest.param(
            {"x-api-key": KEY, "host": "evil.example"}, (403, "permission_error"), id="dns rebinding"
        ),
        pytest.param(
            {"x-api-key": KEY, "origin": "https://evil.example"}, (403, "permission_error"), id="web page"
        ),
        pytest.param(
            {"x-api-key": KEY, "sec-fetch-site": "cross-site"}, (403, "permission_error"), id="cross-site"
        ),
        pytest.param(
            {"x-api-key": KEY, "content-type": "text/plain"}, (400, "invalid_request_error"), id="csrf type"
        ),
    ],
)
async def test_q_strangers_and_web_pages_are_turned_away(
    headers: dict[str, str], expected: tuple[int, str]
) -> None:
    google = FakeGoogle(streams(HELLO))
    async with gateway(google) as running:
        assert await _ask(running, headers) == expected
    assert google.arrived == []


async def test_j5_a_client_that_sends_everything_first_still_reads_the_413() -> None:
    def send(url: str) -> int:
        body = b" " * 3_000_000
        request = urllib.request.Request(
            url, data=body, headers={"x-api-key": KEY, "content-type": "application/json"}
        )
        try:
            urllib.request.urlopen(request)
        except urllib.error.HTTPError as error:
            with error:
                return error.code
        return 200

    async with gateway(FakeGoogle(streams(HELLO)), server={"max_body_bytes": 1_000_000}) as running:
        assert await asyncio.to_thread(send, running.url + "/v1/messages") == 413


async def test_j5_a_body_over_the_limit_is_a_413_in_the_dialect() -> None:
    async with gateway(FakeGoogle(streams(HELLO)), server={"max_body_bytes": 50}) as running:
        assert await _ask(running, {"x-api-key": KEY}) == (413, "request_too_large")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("HEAD", "/", 200),
        ("HEAD", "/api/hello", 200),
        ("GET", "/api/hello", 200),
        ("GET", "/healthz", 200),
        ("GET", "/readyz", 200),
        ("POST", "/api/event_logging/batch", 200),
        ("GET", "/v1/models?limit=1000", 200),
        ("GET", "/v1/models/claude-sonnet-4-5", 200),
        ("GET", "/v1/nothing", 404),
        ("GET", "/v1/messages", 405),
    ],
)
async def test_paths_claude_code_calls(method: str, path: str, status: int) -> None:
    async with gateway(FakeGoogle(streams(HELLO))) as running:
        body: dict[str, str] | None = {} if method == "POST" else None
        url = running.url + path
        async with running.session.request(method, url, headers=running.headers, json=body) as response:
            assert response.status == status
            assert response.headers["x-dragoman-request-id"].startswith("req_")


@pytest.mark.parametrize(
    "name",
    [
        "gemini-x?key=1",
        "gemini-x#",
        "gemini-x\r\nx-evil: 1",
        "gemini-é",
        "gemini-x%2e",
        "gemini-" + "x" * 500,
        "gemini- x",
    ],
)
async def test_q_a_model_name_cannot_reach_into_the_address_or_the_headers(name: str) -> None:
    google = FakeGoogle(streams(HELLO))
    async with gateway(google) as running:
        for path in ("/v1/messages", "/v1/messages/count_tokens"):
            body = {"model": name, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
            response = await running.post(path, **body)
            assert response.status == 400
            assert "no name of a model" in (await response.json())["error"]["message"]
    assert google.arrived == []


async def test_f7_discovery_finds_models_with_claude_in_their_names_and_real_limits() -> None:
    async with gateway(FakeGoogle(streams(HELLO))) as running:
        asking = {**running.headers, "anthropic-version": "2023-06-01"}
        async with running.session.get(running.url + "/v1/models?limit=1000", headers=asking) as response:
            models = (await response.json())["data"]
    named = {model["id"]: model for model in models}
    assert named["claude-gemini-3.8-flash"]["max_input_tokens"] == 1_048_576
    assert sum("claude" in name for name in named) >= 5


async def test_m4_the_answer_says_which_model_really_ran() -> None:
    google = FakeGoogle(streams(HELLO))
    async with gateway(google) as running:
        response = await running.messages(model="claude-opus-4-8[1m]")
        assert response.headers["x-dragoman-model"] == "gemini-pro-latest"
        assert response.headers["x-dragoman-notes"] == "0"
        await response.read()
    assert google.arrived[0].path == "/v1beta/models/gemini-pro-latest:streamGenerateContent?alt=sse"


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": "Bearer sk-ant-oat01-stale", "x-api-key": KEY},
        {"authorization": f"Bearer {KEY}", "x-api-key": "stale"},
        {"authorization": "Bearer AIza-not-ours", "x-goog-api-key": KEY},
    ],
)
async def test_n1_a_stale_credential_does_not_hide_the_right_one(headers: dict[str, str]) -> None:
    google = FakeGoogle(streams(HELLO))
    async with gateway(google) as running:
        assert await _ask(running, headers) == (200, "Hello")
    assert google.arrived[0].headers["x-goog-api-key"] == GOOGLE_KEY


async def test_a_gateway_key_that_looks_like_googles_stays_here() -> None:
    google = FakeGoogle(streams(HELLO))
    key = "AQ.our-own-gateway-key-0123456789"
    async with gateway(google, keys=(key,)) as running:
        assert await _ask(running, {"x-api-key": key}) == (200, "Hello")
    assert google.arrived[0].headers["x-goog-api-key"] == GOOGLE_KEY


async def test_q11_the_key_does_not_follow_a_redirect() -> None:
    thief = FakeGoogle(streams(HELLO))
    server = await asyncio.start_server(thief.serve, "127.0.0.1", 0)
    place = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/steal"

    async def redirect(writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 307 X\r\nlocation: {place}\r\ncontent-length: 0\r\n\r\n".encode())
        await writer.drain()

    async with gateway(FakeGoogle(redirect), upstream={"max_attempts": 1}) as running:
        status, _ = await _ask(running, {"x-api-key": KEY})
    server.close()
    assert status >= 400
    assert thief.arrived == []


async def test_while_shutting_down_the_gateway_is_alive_but_not_ready() -> None:
    async with gateway(FakeGoogle(streams(HELLO))) as running:
        running.app.gateway.draining = True
        statuses = []
        for path in ("/healthz", "/readyz"):
            async with running.session.get(running.url + path) as response:
                statuses.append(response.status)
        assert statuses == [200, 503]
        async with await running.messages() as response:  # balancers need a moment to notice
            assert (response.status, response.headers["connection"]) == (200, "close")
            assert text_of(await events_of(response)) == "Hello"
