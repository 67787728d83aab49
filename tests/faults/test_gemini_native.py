"""Gemini clients at the gateway's door: every address, both framings, keys in headers or addresses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.faults.harness import (
    GOOGLE_KEY,
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

HI = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
ADDRESSES = (
    "/v1beta/models/gemini-3.8-flash",
    "/v1/models/gemini-3.8-flash",
    "/v1alpha/models/gemini-3.8-flash",
    "/models/gemini-3.8-flash",
    "/v1beta1/publishers/google/models/gemini-3.8-flash",
    "/v1/projects/p/locations/global/publishers/google/models/gemini-3.8-flash",
)


async def ask(
    running: Running, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> tuple[int, str, str]:
    sent = running.headers if headers is None else headers
    async with running.session.post(running.url + path, json=body or HI, headers=sent) as response:
        return response.status, response.headers["content-type"], await response.text()


@pytest.mark.parametrize("address", ADDRESSES)
async def test_every_address_of_googles_is_understood(address: str) -> None:
    google = FakeGoogle(streams(HELLO))
    async with gateway(google) as running:
        status, kind, text = await ask(running, f"{address}:streamGenerateContent?alt=sse")
    assert (status, kind) == (200, "text/event-stream; charset=utf-8")
    assert json.loads(text.split("\r\n\r\n")[0][6:])["candidates"][0]["content"]["parts"] == [
        {"text": "Hello"}
    ]
    assert google.arrived[0].path.endswith("/models/gemini-3.8-flash:streamGenerateContent?alt=sse")


@pytest.mark.parametrize(
    ("query", "kind"), [("$alt=sse", "text/event-stream"), ("alt=json", "application/json")]
)
async def test_the_framing_is_named_as_googles_clients_do(query: str, kind: str) -> None:
    async with gateway(FakeGoogle(streams(HELLO))) as running:
        path = f"{ADDRESSES[0]}:streamGenerateContent?{query}&prettyPrint=false"
        status, found, _ = await ask(running, path)
    assert (status, found.partition(";")[0]) == (200, kind)


async def test_without_alt_the_stream_is_a_json_array() -> None:
    async with gateway(FakeGoogle(streams(HELLO))) as running:
        _, kind, text = await ask(running, f"{ADDRESSES[0]}:streamGenerateContent")
    assert kind.startswith("application/json")
    assert [item["candidates"][0].get("finishReason") for item in json.loads(text)] == [None, "STOP"]


async def test_a_whole_answer_and_a_count() -> None:
    google = FakeGoogle(
        answers(json.loads(chunk({"text": "Hello"}, finish="STOP")[6:])), answers({"totalTokens": 7})
    )
    async with gateway(google) as running:
        _, _, text = await ask(running, f"{ADDRESSES[0]}:generateContent")
        _, _, counted = await ask(running, f"{ADDRESSES[0]}:countTokens")
    assert json.loads(text)["candidates"][0]["content"]["parts"] == [{"text": "Hello"}]
    assert json.loads(counted) == {"totalTokens": 7}


async def test_q11_a_key_in_the_address_opens_the_door_and_goes_no_further() -> None:
    google = FakeGoogle(streams(HELLO))
    async with gateway(google) as running:
        path = f"{ADDRESSES[0]}:streamGenerateContent?alt=sse&key="
        assert (await ask(running, path + KEY, headers={}))[0] == 200
        assert (await ask(running, path + "wrong", headers={}))[0] == 401
        assert (await ask(running, path + "AIza-theirs", headers={}))[0] == 200
    assert [item.headers["x-goog-api-key"] for item in google.arrived] == [GOOGLE_KEY, "AIza-theirs"]
    assert all("key=" not in item.path for item in google.arrived)


async def test_google_refuses_in_its_own_words_and_shape() -> None:
    google = FakeGoogle(refuses(400, "contents is odd"))
    async with gateway(google) as running:
        status, _, text = await ask(running, f"{ADDRESSES[0]}:streamGenerateContent")
        _, _, single = await ask(running, f"{ADDRESSES[0]}:generateContent")
    assert (status, json.loads(text)[0]["error"]["message"]) == (400, "contents is odd")
    assert json.loads(single)["error"]["code"] == 400


async def test_a_request_we_cannot_read_is_refused_in_googles_shape() -> None:
    async with gateway(FakeGoogle(streams(HELLO))) as running:
        status, _, text = await ask(running, f"{ADDRESSES[0]}:generateContent", {"contents": [{"role": "x"}]})
        missing = await ask(running, "/v1beta/models/gemini-3.8-flash:explode")
    assert (status, json.loads(text)["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert (missing[0], json.loads(missing[2])["error"]["status"]) == (404, "NOT_FOUND")


async def test_d1_a_malformed_call_is_tried_again_for_gemini_clients_too() -> None:
    google = FakeGoogle(streams(MALFORMED), streams(HELLO))
    async with gateway(google) as running:
        status, _, text = await ask(running, f"{ADDRESSES[0]}:streamGenerateContent?alt=sse")
    assert (status, len(google.arrived)) == (200, 2)
    assert "Hello" in text
    assert "MALFORMED" not in text


async def test_models_are_listed_in_the_dialect_of_the_one_who_asks() -> None:
    async with gateway(FakeGoogle(streams(HELLO))) as running:

        async def listed(path: str, **headers: str) -> Any:
            sent = {**running.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
            async with running.session.get(running.url + path, headers=sent) as response:
                assert response.status == 200
                return await response.json()

        assert (await listed("/v1/models"))["object"] == "list"
        assert (await listed("/v1/models", anthropic_version="2023-06-01"))["has_more"] is False
        assert (await listed("/v1/models", x_goog_api_key=KEY))["models"][0]["name"].startswith(
            "models/gemini"
        )
        assert (await listed("/v1beta/models"))["models"]
        assert (await listed("/v1beta/models/gemini-3.8-flash"))["name"] == "models/gemini-3.8-flash"
        assert (await listed("/v1/models/gemini-3.8-flash"))["owned_by"] == "google"


@pytest.mark.parametrize(
    ("headers", "size", "token", "entries", "name"),
    [
        ({"x-goog-api-key": KEY}, "pageSize", "pageToken", "models", "name"),
        ({"x-api-key": KEY, "anthropic-version": "1"}, "limit", "after_id", "data", "id"),
    ],
)
async def test_the_list_of_models_comes_in_pages(
    headers: dict[str, str], size: str, token: str, entries: str, name: str
) -> None:
    async with gateway(FakeGoogle()) as running:

        async def page(**query: str) -> tuple[int, Any]:
            async with running.session.get(
                running.url + "/v1/models", headers=headers, params=query
            ) as response:
                return response.status, await response.json()

        _, everything = await page()
        found: list[str] = []
        _, some = await page(**{size: "3"})
        while more := some.get("nextPageToken") or (some.get("has_more") and some["last_id"]):
            assert len(some[entries]) == 3
            found += [entry[name] for entry in some[entries]]
            _, some = await page(**{size: "3", token: more})
        found += [entry[name] for entry in some[entries]]
        assert found == [entry[name] for entry in everything[entries]]
        assert (await page(**{size: "0"}))[0] == 400
        assert (await page(**{token: "nowhere"}))[0] == 400


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1beta/models/gemini-embedding-001:embedContent"),
        ("GET", "/v1beta/files"),
        ("POST", "/upload/v1beta/files"),
        ("POST", "/v1beta/cachedContents"),
    ],
)
async def test_what_is_not_offered_is_said_in_googles_shape(method: str, path: str) -> None:
    async with (
        gateway(FakeGoogle()) as running,
        running.session.request(
            method, running.url + path, json={}, headers={"x-goog-api-key": KEY}
        ) as response,
    ):
        told = (await response.json())["error"]
    assert (response.status, told["code"], told["status"]) == (404, 404, "NOT_FOUND")
