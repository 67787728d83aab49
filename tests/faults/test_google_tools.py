"""Searches that the gateway makes aside: Google fails in them, and refuses what it should take."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.faults.harness import (
    TOOLS,
    FakeGoogle,
    answers,
    chunk,
    events_of,
    gateway,
    refuses,
    silence,
    streams,
    text_of,
)

Json = dict[str, Any]

OLD, NEW = "gemini-2.5-flash", "gemini-3.8-flash"
SEARCH: Json = {"type": "web_search_20250305", "name": "web_search"}
DONE = streams(chunk({"text": "Done"}, finish="STOP"))


def calls(args: Json) -> Any:
    return streams(chunk({"functionCall": {"name": "web_search", "args": args}}, finish="STOP"))


def found(text: str = "It is so.") -> Any:
    grounding = {
        "webSearchQueries": ["q"],
        "groundingChunks": [{"web": {"uri": "https://a.org", "title": "a.org"}}],
    }
    candidate = {
        "content": {"role": "model", "parts": [{"text": text}]},
        "finishReason": "STOP",
        "groundingMetadata": grounding,
    }
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 50, "totalTokenCount": 150}
    return answers({"candidates": [candidate], "usageMetadata": usage})


async def asked(google: FakeGoogle, model: str = OLD, **more: Any) -> list[Json]:
    async with gateway(google) as running:
        response = await running.messages(model=model, tools=[*TOOLS, SEARCH], **more)
        assert response.status == 200, await response.text()
        return await events_of(response)


def results(events: list[Json]) -> list[Any]:
    blocks = [event["content_block"] for event in events if event["type"] == "content_block_start"]
    return [block["content"] for block in blocks if block["type"] == "web_search_tool_result"]


def told(google: FakeGoogle) -> Json:
    """What the model was told of its call."""
    response: Json = google.arrived[-1].body["contents"][-1]["parts"][0]["functionResponse"]["response"]
    return response


async def test_what_it_costs_is_counted() -> None:
    google = FakeGoogle(calls({"query": "q"}), found(), DONE)
    events = await asked(google)
    assert [hit["url"] for hit in results(events)[0]] == ["https://a.org"]
    usage = next(event for event in events if event["type"] == "message_delta")["usage"]
    assert usage["output_tokens"] == 3 + 50 + 3
    assert usage["server_tool_use"] == {"web_search_requests": 1, "web_fetch_requests": 0}
    assert told(google) == {"output": "It is so.\n\nSources:\n- a.org: https://a.org"}
    assert google.arrived[1].headers["x-goog-api-key"] == google.arrived[0].headers["x-goog-api-key"]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_what_it_costs_is_told_although_the_client_has_a_call_to_answer(stream: bool) -> None:
    both = [
        {"functionCall": {"name": name, "args": {"query": "q"}}} for name in ("web_search", "get_weather")
    ]
    step = chunk(*both, finish="STOP")
    google = FakeGoogle(streams(step) if stream else answers(json.loads(step[6:])), found())
    async with gateway(google) as running:
        response = await running.messages(model=OLD, tools=[*TOOLS, SEARCH], stream=stream)
        told = (await events_of(response))[-2] if stream else await response.json()
    assert told["usage"]["output_tokens"] == 3 + 50
    assert told["usage"]["input_tokens"] == 7  # the size of the conversation, as the client knows it
    assert told["usage"]["server_tool_use"] == {"web_search_requests": 1, "web_fetch_requests": 0}


async def test_a_busy_google_is_asked_again() -> None:
    google = FakeGoogle(calls({"query": "q"}), refuses(503), found(), DONE)
    assert text_of(await asked(google)) == "Done"
    assert [list(tool) for tool in google.arrived[2].body["tools"]] == [["googleSearch"]]


@pytest.mark.parametrize(
    ("trouble", "code"),
    [
        (refuses(400, "no such thing"), "unavailable"),
        (answers({"promptFeedback": {"blockReason": "SAFETY"}}), "unavailable"),
        (answers({"candidates": [{"finishReason": "STOP"}]}), "unavailable"),
        (
            refuses(
                429,
                "quota",
                {
                    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                    "violations": [{"quotaId": "RequestsPerDay"}],
                },
            ),
            "too_many_requests",
        ),
    ],
)
async def test_a_search_that_fails_costs_no_answer(trouble: Any, code: str) -> None:
    google = FakeGoogle(calls({"query": "q"}), trouble, DONE)
    events = await asked(google)
    assert text_of(events) == "Done"
    assert results(events)[0]["error_code"] == code
    assert told(google)["error"].startswith("It failed: ")


@pytest.mark.parametrize("args", [{}, {"query": ""}, {"query": 5}])
async def test_a_search_for_nothing_is_not_made(args: Json) -> None:
    google = FakeGoogle(calls(args), DONE)
    events = await asked(google)
    assert results(events)[0]["error_code"] == "invalid_tool_input"
    assert "query" in told(google)["error"]


async def test_a_client_that_leaves_ends_the_search() -> None:
    google = FakeGoogle(calls({"query": "q"}), silence)
    async with gateway(google) as running:
        task = asyncio.ensure_future(running.messages(model=OLD, tools=[*TOOLS, SEARCH], stream=False))
        while len(google.arrived) < 2:
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait({task})
        await asyncio.wait_for(google.hung_up.wait(), 5)


async def test_k2_a_mix_that_google_refuses_after_all_is_tried_without_its_tools() -> None:
    refused = refuses(400, "Multiple tools are supported only when they are all search tools.")
    google = FakeGoogle(refused, DONE)
    assert text_of(await asked(google, NEW)) == "Done"
    kinds = [[kind for tool in arrived.body["tools"] for kind in tool] for arrived in google.arrived]
    assert kinds == [["functionDeclarations", "googleSearch"], ["functionDeclarations"]]
    assert "toolConfig" not in google.arrived[1].body
