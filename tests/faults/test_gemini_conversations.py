"""`/v1/gemini`: the gateway keeps history and tools of a conversation; nothing of one gets into another."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dragoman.store import StoreUnavailable
from tests.faults.harness import (
    GOOGLE_KEY,
    HELLO,
    FakeGoogle,
    Running,
    answers,
    chunk,
    gateway,
    refuses,
    silence,
    streams,
)

TOOLS = [
    {
        "functionDeclarations": [
            {
                "name": "get_weather",
                "parameters": {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}},
            }
        ]
    }
]
CONFIG = {"functionCallingConfig": {"mode": "VALIDATED"}}
CALL = json.loads(
    chunk(
        {
            "functionCall": {"name": "get_weather", "id": "abc", "args": {"city": "Paris"}},
            "thoughtSignature": "c2ln",
        },
        finish="STOP",
    )[6:]
)
DONE = json.loads(chunk({"text": "It is 20°."}, finish="STOP")[6:])


async def ask(running: Running, **body: Any) -> tuple[int, Any]:
    async with running.session.post(
        running.url + "/v1/gemini", json={"model": "gemini-3.8-flash", **body}, headers=running.headers
    ) as response:
        text = await response.text()
        return response.status, json.loads(text) if response.content_type == "application/json" else text


def result(call: Any) -> dict[str, Any]:
    return {
        "role": "user",
        "parts": [{"functionResponse": {"name": call["name"], "id": call["id"], "response": {"t": 20}}}],
    }


async def test_a_result_alone_continues_the_conversation_with_its_history_and_tools() -> None:
    google = FakeGoogle(answers(CALL), answers(DONE))
    async with gateway(google) as running:
        _, first = await ask(
            running, input="Weather in Paris?", tools=TOOLS, toolConfig=CONFIG, conversation="demo"
        )
        call = first["candidates"][0]["content"]["parts"][0]["functionCall"]
        assert (call["name"], call["args"]) == ("get_weather", {"city": "Paris"})
        _, second = await ask(running, model=None, input=[result(call)], conversation={"id": "demo"})
    assert google.arrived[1].path == google.arrived[0].path
    assert second["candidates"][0]["content"]["parts"] == [{"text": "It is 20°."}]
    sent = google.arrived[1].body
    assert sent["tools"] == TOOLS
    assert sent["toolConfig"] == CONFIG
    assert [content["role"] for content in sent["contents"]] == ["user", "model", "user"]
    assert sent["contents"][1]["parts"][0] == {
        "functionCall": {"name": "get_weather", "id": "abc", "args": {"city": "Paris"}},
        "thoughtSignature": "c2ln",
    }
    assert sent["contents"][2]["parts"][0]["functionResponse"]["response"] == {"t": 20}


async def test_a_forced_call_is_not_forced_again_by_its_own_result() -> None:
    google = FakeGoogle(answers(CALL), answers(DONE))
    forced = {"functionCallingConfig": {"mode": "any"}}
    async with gateway(google) as running:
        _, first = await ask(running, input="?", tools=TOOLS, toolConfig=forced, conversation="demo")
        call = first["candidates"][0]["content"]["parts"][0]["functionCall"]
        await ask(running, input=[result(call)], conversation="demo")
    assert google.arrived[0].body["toolConfig"]["functionCallingConfig"]["mode"] == "ANY"
    assert "toolConfig" not in google.arrived[1].body


async def test_a_stream_is_kept_like_a_whole_answer_and_new_tools_replace_old_ones() -> None:
    google = FakeGoogle(streams(HELLO), streams(HELLO), streams(HELLO))
    async with gateway(google) as running:
        _, text = await ask(running, input="one", tools=TOOLS, conversation="demo", stream=True)
        assert text.count("data: ") == 2
        await ask(
            running,
            input="two",
            tools=[{"functionDeclarations": [{"name": "other"}]}],
            conversation="demo",
            stream=True,
        )
        await ask(running, input="three", conversation="demo", stream=True)
    said = [part["text"] for content in google.arrived[2].body["contents"] for part in content["parts"]]
    assert said == ["one", "Hello", "two", "Hello", "three"]
    assert google.arrived[2].body["tools"] == [{"functionDeclarations": [{"name": "other"}]}]


async def test_without_a_conversation_nothing_is_kept() -> None:
    google = FakeGoogle(answers(DONE))
    async with gateway(google) as running:
        await ask(running, input="one", tools=TOOLS)
        await ask(running, contents=[{"parts": [{"text": "two"}]}])
    assert "tools" not in google.arrived[1].body
    assert len(google.arrived[1].body["contents"]) == 1


async def test_an_answer_that_failed_leaves_the_conversation_as_it_was() -> None:
    google = FakeGoogle(answers(DONE), refuses(400, "no"), answers(DONE))
    async with gateway(google) as running:
        await ask(running, input="one", conversation="demo")
        assert (await ask(running, input="two", conversation="demo"))[0] == 400
        await ask(running, input="three", conversation="demo")
    said = [part["text"] for content in google.arrived[2].body["contents"] for part in content["parts"]]
    assert said == ["one", "It is 20°.", "three"]


async def test_of_two_requests_at_once_one_wins_and_the_other_is_told() -> None:
    google = FakeGoogle(silence, answers(DONE))
    async with gateway(google) as running:
        slow = asyncio.ensure_future(ask(running, input="one", conversation="demo"))
        while not google.arrived:
            await asyncio.sleep(0.01)
        status, told = await ask(running, input="two", conversation="demo")
        assert (status, told["error"]["status"]) == (409, "ABORTED")
        assert "another request is running" in told["error"]["message"]
        elsewhere, _ = await ask(running, input="two", conversation="another")
        assert elsewhere == 200
        slow.cancel()
        while (await ask(running, input="three", conversation="demo"))[0] != 200:
            await asyncio.sleep(0.01)
    said = [part["text"] for content in google.arrived[-1].body["contents"] for part in content["parts"]]
    assert said == ["three"]


async def test_callers_with_different_keys_share_no_conversation() -> None:
    google = FakeGoogle(answers(DONE))
    async with gateway(google) as running:
        await ask(running, input="secret", conversation="demo")
        running.headers = {"x-goog-api-key": "AIza-somebody-else"}
        await ask(running, input="hi", conversation="demo")
    assert "secret" not in json.dumps(google.arrived[1].body)
    assert [item.headers["x-goog-api-key"] for item in google.arrived] == [GOOGLE_KEY, "AIza-somebody-else"]


async def test_state_that_cannot_be_reached_is_no_reason_to_answer_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    google = FakeGoogle(answers(DONE))
    async with gateway(google) as running:
        await ask(running, input="one", conversation="demo")

        async def broken(*_: Any) -> Any:
            raise StoreUnavailable("disk gone")

        monkeypatch.setattr(running.app.gateway.store.turns, "chain", broken)
        status, told = await ask(running, input="two", conversation="demo")
        stateless, _ = await ask(running, input="two")
    assert (status, stateless) == (503, 200)
    assert told["error"]["details"][0]["retryDelay"] == "2s"
    assert len(google.arrived) == 2


async def test_a_request_without_input_is_told_so() -> None:
    async with gateway(FakeGoogle(answers(DONE))) as running:
        status, told = await ask(running, conversation="demo")
    assert (status, told["error"]["message"]) == (400, "input: there is no input: a string, or contents")
