"""Amazon's streaming client of Q and Kiro in its three wire forms, both operations, with a bearer token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.amazon_programs import install_q_client, run_rounds
from tests.e2e.clients import INSTALL_S
from tests.e2e.fake_google import Google
from tests.e2e.gateway import GATEWAY_KEY, Gateway
from tests.e2e.recording_proxy import Tap, recording_proxy
from tests.unit.dialects.amazonq.strict_reader import read

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]

PROGRAM = Path(__file__).with_name("q_rounds.mjs")
#: form and operation -> the request line and target they become on the wire.
WAYS = {
    "rest:generate": ("POST /generateAssistantResponse", ""),
    "rest:send": ("POST /SendMessageStreaming", ""),
    "cli:generate": ("POST /", "AmazonCodeWhispererStreamingService.GenerateAssistantResponse"),
    "cli:send": ("POST /", "AmazonCodeWhispererStreamingService.SendMessage"),
    "kiro:generate": ("POST /", "KiroRuntimeService.GenerateAssistantResponse"),
    "kiro:send": ("POST /", "KiroRuntimeService.SendMessage"),
}
SAID = (
    'weather returned: sun over Oslo\nweather returned: {"sky":"sun over Rome"}\nweather failed: no such city'
)


def play(tap: Tap, way: str, *rounds: str) -> dict[str, Any]:
    saw = run_rounds(PROGRAM, install_q_client(), tap.url, [f"{one}:{way}" for one in rounds])
    assert {
        (path, one.asked.headers.get("x-amz-target", ""))
        for path, one in zip(tap.paths(), tap.seen(), strict=True)
    } == {WAYS[way]}
    return {name.partition(":")[0]: value for name, value in saw.items()}


@pytest.mark.parametrize("way", WAYS)
def test_tools_and_all_else_a_conversation_has(tap: Tap, google: Google, way: str) -> None:
    saw = play(tap, way, "tools", "text", "thinking", "picture", "cancelled")
    turns = saw["tools"]
    calls = [[(tool["name"], tool["input"]) for tool in turn["tools"]] for turn in turns]
    assert calls == [
        [("weather", '{"city":"Oslo"}'), ("weather", '{"city":"Rome"}')],
        [("weather", '{"city":"nowhere"}')],
        [],
    ]
    assert len({tool["toolUseId"] for turn in turns for tool in turn["tools"]}) == 3
    assert turns[-1]["text"] == SAID
    assert all(turn["kinds"][0] == "messageMetadataEvent" and turn["tokens"] > 0 for turn in turns)
    assert [turn["text"] for turn in saw["text"]] == ["good morning"]
    first, then = saw["thinking"]
    assert first["kinds"][:3] == ["messageMetadataEvent", "reasoningContentEvent", "toolUseEvent"]
    assert "Easy" in first["thought"]
    assert first["signature"]
    assert then["text"] == "weather returned: sun over Bern"
    assert "image/png" in saw["picture"][-1]["text"]
    assert "text/plain" in saw["picture"][-1]["text"]
    assert saw["cancelled"]["text"] == "never mind"
    assert not tap.refused(), "\n".join(tap.refused())
    # The client's own model is too old for the stop reason; Kiro takes a stream without it for cut off.
    stops = [read(one.answered.body).stop_reason for one in tap.seen()]
    assert stops == [
        *("TOOL_USE", "TOOL_USE", "END_TURN"),
        "END_TURN",
        *("TOOL_USE", "END_TURN"),
        "END_TURN",
        *("TOOL_USE", "END_TURN"),
    ]
    assert google.sentinels() == 0


@pytest.mark.parametrize("way", WAYS)
def test_a_wrong_key_is_refused(tap: Tap, way: str) -> None:
    error = play(tap, way, "stranger")["stranger"]
    assert (error["name"], error["status"]) == ("AccessDeniedException", 403)


@pytest.mark.parametrize("way", WAYS)
def test_with_the_key_in_the_address_any_login_will_do(gateway: Gateway, way: str) -> None:
    stranger = f"stranger:{way}"
    saw = run_rounds(PROGRAM, install_q_client(), f"{gateway.url}/key/{GATEWAY_KEY}", [stranger])
    assert saw == {stranger: None}


@pytest.mark.parametrize("way", WAYS)
def test_a_prompt_that_is_too_long(tap: Tap, google: Google, way: str) -> None:
    """These words, to the letter: they make the clients compact."""
    google.overflow_next()
    error = play(tap, way, "refused")["refused"]
    assert (error["name"], error["status"]) == ("ValidationException", 400)
    assert (error["message"], error["reason"]) == ("Input is too long.", "CONTENT_LENGTH_EXCEEDS_THRESHOLD")


@pytest.mark.parametrize("way", [way for way in WAYS if way.endswith(":generate")])
def test_an_answer_that_breaks_off_is_an_error(breaking_gateway: Gateway, way: str) -> None:
    with recording_proxy(breaking_gateway.url) as tap:
        error = play(tap, way, "refused")["refused"]
        assert [one.answered.status for one in tap.seen()] == [200]
    assert error["name"] == (
        "serviceUnavailableError" if way.startswith("kiro") else "InternalServerException"
    )
    assert "broke" in error["message"]
