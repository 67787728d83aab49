"""Tool search over real connections: what the client sees, what Google gets, and what goes wrong on the way."""

from __future__ import annotations

import asyncio
import json
from typing import Any, ClassVar

import pytest

from dragoman.config import ToolsConfig
from tests.faults.harness import (
    HELLO,
    FakeGoogle,
    answers,
    chunk,
    events_of,
    gateway,
    refuses,
    streams,
    text_of,
    types_of,
)

Json = dict[str, Any]

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
REGEX = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
MANY = [f"mcp__srv{number % 5}__tool_{number}" for number in range(60)]
TOOLS: list[Json] = [
    {"name": "Read", "input_schema": {"type": "object"}},
    *({"name": name, "input_schema": {"type": "object"}, "defer_loading": True} for name in MANY),
    {"name": "get_weather", "description": "The forecast", "input_schema": CITY, "defer_loading": True},
    REGEX,
]
SAYS = json.loads(chunk({"text": "Done."}, finish="STOP")[6:])


def calls(name: str, text: str = "", identity: str = "g1", **args: Any) -> bytes:
    asks = {"functionCall": {"name": name, "args": args, "id": identity}, "thoughtSignature": "c2ln"}
    parts: list[Json] = [{"text": text}] if text else []
    return chunk(*parts, asks) + chunk({"text": ""}, finish="STOP")


def declared(body: Json) -> list[str]:
    return [one["name"] for tools in body.get("tools", ()) for one in tools.get("functionDeclarations", ())]


def blocks(events: list[Json]) -> list[str]:
    return [event["content_block"]["type"] for event in events if event["type"] == "content_block_start"]


SEARCHES = calls("tool_search_tool_regex", text="Let me see.", pattern="weather|forecast")
USES = calls("get_weather", identity="g2", city="Paris")


async def test_a_client_that_asks_for_a_search_sees_it_run() -> None:
    google = FakeGoogle(streams(SEARCHES), streams(USES))
    async with gateway(google) as running:
        response = await running.messages(tools=TOOLS)
        events = await events_of(response)
    assert blocks(events) == ["text", "server_tool_use", "tool_search_tool_result", "tool_use"]
    assert types_of(events)[-1] == "message_stop"
    assert [declared(one.body) for one in google.arrived] == [
        ["Read", "tool_search_tool_regex"],
        ["Read", "tool_search_tool_regex", "get_weather"],
    ]
    answer = google.arrived[1].body["contents"][-1]["parts"][0]["functionResponse"]
    assert answer["response"]["tools"] == ["get_weather"]
    assert response.headers["x-dragoman-notes"] == "1"


async def test_the_next_request_knows_what_was_found_and_google_reads_its_own_words() -> None:
    google = FakeGoogle(streams(SEARCHES), streams(USES), streams(HELLO))
    async with gateway(google) as running:
        first = await events_of(await running.messages(tools=TOOLS))
        (used,) = (
            event["content_block"]
            for event in first
            if event["type"] == "content_block_start" and event["content_block"]["type"] == "tool_use"
        )
        history = [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{**used, "input": {"city": "Paris"}}]},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": used["id"], "content": "sun"}],
            },
        ]
        await events_of(await running.messages(tools=TOOLS, messages=history))
    last = google.arrived[-1].body
    assert declared(last) == ["Read", "tool_search_tool_regex", "get_weather"]
    kinds = [next(iter(part)) for content in last["contents"] for part in content["parts"]]
    assert kinds == ["text", "text", "functionCall", "functionResponse", "functionCall", "functionResponse"]
    assert "skip_thought" not in json.dumps(last)


async def test_an_invalid_pattern_is_an_error_that_the_model_may_mend() -> None:
    google = FakeGoogle(streams(calls("tool_search_tool_regex", pattern="(")), streams(HELLO))
    async with gateway(google) as running:
        events = await events_of(await running.messages(tools=TOOLS))
    (result,) = (
        event["content_block"]["content"]
        for event in events
        if event["type"] == "content_block_start" and "content" in event["content_block"]
    )
    assert result["error_code"] == "invalid_tool_input"
    assert "unterminated" in result["error_message"]
    assert text_of(events) == "Hello"
    sent = google.arrived[1].body["contents"][-1]["parts"][0]["functionResponse"]["response"]
    assert "unterminated" in sent["error"]


async def test_a_tool_that_is_called_unseen_is_passed_on_if_the_call_is_right() -> None:
    google = FakeGoogle(streams(USES))
    async with gateway(google) as running:
        events = await events_of(await running.messages(tools=TOOLS))
    assert blocks(events) == ["tool_use"]


async def test_and_shown_to_the_model_if_it_is_not() -> None:
    google = FakeGoogle(streams(calls("get_weather", place="Paris")), streams(USES))
    async with gateway(google) as running:
        events = await events_of(await running.messages(tools=TOOLS))
    assert blocks(events) == ["tool_use"]
    assert declared(google.arrived[1].body)[-1] == "get_weather"


async def test_a_round_that_fails_is_tried_again_and_shows_nothing_twice() -> None:
    google = FakeGoogle(streams(SEARCHES), refuses(503), streams(HELLO))
    async with gateway(google) as running:
        events = await events_of(await running.messages(tools=TOOLS))
    assert blocks(events) == ["text", "server_tool_use", "tool_search_tool_result", "text"]
    assert text_of(events) == "Let me see.Hello"
    assert google.arrived[1].body == google.arrived[2].body


async def test_only_what_is_sent_is_counted() -> None:
    google = FakeGoogle(answers({"totalTokens": 7}))
    async with gateway(google) as running:
        body = {"model": "claude-x", "messages": [{"role": "user", "content": "hi"}], "tools": TOOLS}
        counted = await (await running.post("/v1/messages/count_tokens", **body)).json()
    assert counted == {"input_tokens": 7}
    sent = google.arrived[0].body["generateContentRequest"]
    assert declared(sent) == ["Read", "tool_search_tool_regex"]


class TestOurOwn:
    """`tools.search_above`: for clients that know nothing of it."""

    CHAT: ClassVar[Json] = {
        "model": "gpt-5",
        "tools": [
            {"type": "function", "function": {"name": name, "parameters": CITY}}
            for name in [*MANY, "get_weather"]
        ],
    }

    async def test_it_stays_out_of_sight_and_is_remembered(self) -> None:
        uses = json.loads(calls("get_weather", identity="g2", city="Paris").split(b"\r\n\r\n")[0][6:])
        uses["candidates"][0]["finishReason"] = "STOP"
        asks = json.loads(calls("find_tools", query="weather forecast").split(b"\r\n\r\n")[0][6:])
        asks["candidates"][0]["finishReason"] = "STOP"
        google = FakeGoogle(answers(asks), answers(uses), answers(SAYS))
        tools = ToolsConfig(search_above=3)
        async with gateway(google, tools=tools) as running:
            asked = {"role": "user", "content": "hi"}
            first = await (await running.post("/v1/chat/completions", messages=[asked], **self.CHAT)).json()
            said = first["choices"][0]["message"]
            (call,) = said["tool_calls"]
            result = {"role": "tool", "tool_call_id": call["id"], "content": "sun"}
            history = [asked, said, result]
            second = await (await running.post("/v1/chat/completions", messages=history, **self.CHAT)).json()
        assert (call["function"]["name"], second["choices"][0]["message"]["content"]) == (
            "get_weather",
            "Done.",
        )
        shown = [*MANY[:3], "find_tools"]
        assert [declared(one.body) for one in google.arrived] == [
            shown,
            [*shown, "get_weather"],
            [*shown, "get_weather"],
        ]
        kinds = [
            next(iter(part)) for content in google.arrived[2].body["contents"] for part in content["parts"]
        ]
        assert kinds == ["text", "functionCall", "functionResponse", "functionCall", "functionResponse"]

    @pytest.mark.parametrize("above", [0, 100])
    async def test_it_is_for_those_who_have_too_many(self, above: int) -> None:
        google = FakeGoogle(answers(SAYS))
        async with gateway(google, tools=ToolsConfig(search_above=above)) as running:
            body = {**self.CHAT, "messages": [{"role": "user", "content": "hi"}]}
            await (await running.post("/v1/chat/completions", **body)).json()
        assert declared(google.arrived[0].body) == [*MANY, "get_weather"]

    async def test_a_forced_tool_is_declared(self) -> None:
        google = FakeGoogle(answers(SAYS))
        choice = {"type": "function", "function": {"name": "get_weather"}}
        async with gateway(google, tools=ToolsConfig(search_above=3)) as running:
            body = {**self.CHAT, "messages": [{"role": "user", "content": "hi"}], "tool_choice": choice}
            await (await running.post("/v1/chat/completions", **body)).json()
        sent = google.arrived[0].body
        assert declared(sent) == [*MANY[:3], "find_tools", "get_weather"]
        config = sent["toolConfig"]["functionCallingConfig"]
        assert config == {"mode": "ANY", "allowedFunctionNames": ["get_weather"]}

    async def test_conversations_do_not_share_what_they_found(self) -> None:
        def asks(number: int) -> bytes:
            return calls("find_tools", query=f"tool_{number}")

        google = FakeGoogle()
        google.answer_to = lambda arrived: (  # type: ignore[method-assign]
            streams(HELLO)
            if len(arrived.body["contents"]) > 1
            else streams(asks(int(arrived.body["contents"][0]["parts"][0]["text"])))
        )
        numbers = range(3, 40)
        async with gateway(google, tools=ToolsConfig(search_above=3)) as running:

            async def one(number: int) -> None:
                messages = [{"role": "user", "content": str(number)}]
                await events_of(await running.messages(messages=messages, tools=TOOLS[:-1]))

            await asyncio.gather(*map(one, numbers))
        for arrived in google.arrived:
            wanted = arrived.body["contents"][0]["parts"][0]["text"]
            found = declared(arrived.body)[4:]
            assert not found or found[0].endswith(f"tool_{wanted}")


async def test_a_responses_session_goes_on_from_its_own_search() -> None:
    google = FakeGoogle(
        streams(calls("tool_search", paths=["crm"])),
        streams(calls("crm.get_user", identity="g2")),
        streams(HELLO),
    )
    function = {
        "type": "function",
        "name": "get_user",
        "parameters": None,
        "strict": False,
        "defer_loading": True,
    }
    tools = [
        {"type": "tool_search"},
        {"type": "namespace", "name": "crm", "description": "Customers", "tools": [function]},
    ]
    async with gateway(google) as running:
        ask = {"model": "gpt-5", "input": "who is it?", "tools": tools, "stream": True}
        events = await events_of(await running.post("/v1/responses", **ask))
        response = events[-1]["response"]
        assert [item["type"] for item in response["output"]] == [
            "tool_search_call",
            "tool_search_output",
            "function_call",
        ]
        searched, found, used = response["output"]
        assert (searched["execution"], searched["call_id"]) == ("server", None)
        assert searched["arguments"] == {"paths": ["crm"]}
        assert found["tools"] == [tools[1]]
        assert (used["name"], used["namespace"]) == ("get_user", "crm")
        output = {"type": "function_call_output", "call_id": used["call_id"], "output": "Ann"}
        follow = {"model": "gpt-5", "previous_response_id": response["id"], "input": [output], "stream": True}
        last = (await events_of(await running.post("/v1/responses", **follow)))[-1]
    assert last["response"]["status"] == "completed"
    assert declared(google.arrived[2].body) == ["tool_search", "crm.get_user"]
    kinds = [next(iter(part)) for content in google.arrived[2].body["contents"] for part in content["parts"]]
    assert kinds == ["text", "functionCall", "functionResponse", "functionCall", "functionResponse"]
