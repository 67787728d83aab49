"""What holds for Chat clients alone; the rest in `test_exchange_properties` and `test_exchange_play`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from tests.props.dialect_cases import WIRES
from tests.props.hypothesis_settings import examples
from tests.props.scripted_players import FUNCTIONS, PLANS
from tests.unit.dialects.openai_chat.scripted_client import Player, answer_calls
from tests.unit.dialects.scripted_client import MODELS

Json = dict[str, Any]

WIRE = WIRES["openai_chat"]


@examples(40)
@given(request=WIRE.conversations)
def test_every_call_and_result_arrives(request: Json) -> None:
    _, body = WIRE.exchange(request, "gemini-3.8-flash")
    parts = [part for content in json.loads(body)["contents"] for part in content["parts"]]
    sent = [part["functionCall"]["id"] for part in parts if "functionCall" in part]
    answered = [part["functionResponse"]["id"] for part in parts if "functionResponse" in part]
    calls = [call for message in request["messages"] for call in message.get("tool_calls", ())]
    assert sent == answered == [call["id"] for call in calls]
    for part, call in zip((part for part in parts if "functionCall" in part), calls, strict=True):
        args = part["functionCall"]["args"]
        if call["type"] == "custom":
            assert args == {"input": call["custom"]["input"]}
        elif call["function"]["arguments"][:1] == "{" and "cut" not in call["function"]["arguments"]:
            assert args == json.loads(call["function"]["arguments"])


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("model", MODELS)
def test_the_older_form_carries_its_signature_in_the_message(model: str, stream: bool) -> None:
    player = Player(keeps_store=False, stream=stream, functions=FUNCTIONS)
    assert player.play([PLANS[0], PLANS[0]], [model]) == 2
    assert player.sentinels == 0


def test_g1_custom_tools_make_the_round_with_their_text() -> None:
    player = Player(tools=[{"type": "custom", "custom": {"name": "patch"}}])
    message, reason = player.say("gemini-3.8-flash", 'use patch with {"input": "*** a\\n"} then say done')
    (found,) = message["tool_calls"]
    assert (reason, found["custom"]) == ("tool_calls", {"name": "patch", "input": "*** a\n"})
    message, reason = player.turn("gemini-3.8-flash", answer_calls(message))
    assert (reason, message["content"]) == ("stop", "done")
    assert player.sentinels == 0
