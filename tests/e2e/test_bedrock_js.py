"""Amazon's JavaScript SDK for Bedrock: over HTTP/2, its default, and HTTP/1.1; signed and with a bearer token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.amazon_programs import install_bedrock_sdk, run_rounds
from tests.e2e.clients import INSTALL_S
from tests.e2e.fake_google import Google
from tests.e2e.gateway import Gateway

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]

PROGRAM = Path(__file__).with_name("bedrock_rounds.mjs")
WAYS = [f"{transport}:{auth}" for transport in ("http2", "http1") for auth in ("sigv4", "bearer")]
SAID = (
    'weather returned: sun over Oslo\nweather returned: {"sky":"sun over Rome"}\nweather failed: no such city'
)


def play(gateway: Gateway, way: str, *rounds: str) -> dict[str, Any]:
    saw = run_rounds(PROGRAM, install_bedrock_sdk(), gateway.url, [f"{one}:{way}" for one in rounds])
    return {name.partition(":")[0]: value for name, value in saw.items()}


def text_of(turn: dict[str, Any]) -> str:
    return "".join(block.get("text", "") for block in turn["message"]["content"])


@pytest.mark.parametrize("way", WAYS)
def test_tools_and_all_else_a_conversation_has(gateway: Gateway, google: Google, way: str) -> None:
    alone = ("text", "arn", "long", "many", "picture", "count", "invoke", "chunks")
    saw = play(gateway, way, "whole", "stream", "thinking", *alone)
    for name in ("whole", "stream"):
        turns = saw[name]
        assert [turn["calls"] for turn in turns] == [["Oslo", "Rome"], ["nowhere"], []], name
        assert [turn["stop"] for turn in turns] == ["tool_use", "tool_use", "end_turn"], name
        assert text_of(turns[-1]) == SAID, name
        assert len({one for turn in turns for one in turn["ids"]}) == 3, name
        assert all(turn["tokens"] > 0 and turn["timed"] for turn in turns), name
    first, last = saw["thinking"]
    thought = first["message"]["content"][0]["reasoningContent"]["reasoningText"]
    assert "Easy" in thought["text"]
    assert thought["signature"]
    assert text_of(last) == "weather returned: sun over Oslo"
    assert (text_of(saw["text"]), saw["text"]["stop"]) == ("good morning", "end_turn")
    assert saw["long"] == {"same": True, "stop": "end_turn"}
    assert saw["many"] == [True] * 12
    assert "image/png" in text_of(saw["picture"])
    assert saw["count"] > 0
    assert (text_of(saw["arn"]), saw["arn"]["stop"]) == ("good morning", "end_turn")
    chunks = saw["chunks"]
    assert (chunks[0], chunks[-2:]) == ("message_start", ["tool_use", "message_stop"])
    assert chunks.count("weather") == 2
    assert saw["invoke"]["content"] == [{"type": "text", "text": "good morning"}]
    assert google.sentinels() == 0


@pytest.mark.parametrize("way", WAYS)
def test_a_wrong_key_is_refused(gateway: Gateway, way: str) -> None:
    error = play(gateway, way, "stranger")["stranger"]
    assert (error["name"], error["status"]) == ("AccessDeniedException", 403)


@pytest.mark.parametrize("way", WAYS)
def test_a_prompt_that_is_too_long(gateway: Gateway, google: Google, way: str) -> None:
    google.overflow_next()
    error = play(gateway, way, "refused")["refused"]
    assert (error["name"], error["status"]) == ("ValidationException", 400)
    assert "too long" in error["message"]


@pytest.mark.parametrize("way", ["http2:sigv4", "http1:sigv4"])
def test_an_answer_that_breaks_off_is_an_error(breaking_gateway: Gateway, way: str) -> None:
    error = play(breaking_gateway, way, "refused")["refused"]
    assert error["name"] == "ServiceUnavailableException"
    assert "broke" in error["message"]
