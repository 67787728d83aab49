"""What only clients of the Responses API do with the emulator; the rest in `test_exchange_play`."""

from __future__ import annotations

import pytest

from tests.props.scripted_players import RESPONSES_PLANS, RESPONSES_TOOLS, THIRD
from tests.unit.dialects.openai_responses.scripted_client import Player
from tests.unit.dialects.scripted_client import MODELS


def test_a1_models_of_one_family_trust_each_other() -> None:
    player = Player(tools=RESPONSES_TOOLS, reasoning={"summary": "auto"})
    assert player.play(list(RESPONSES_PLANS), THIRD) > 5
    assert player.sentinels == 0


@pytest.mark.parametrize("model", MODELS)
def test_g1_every_tool_is_called_in_its_own_shape(model: str) -> None:
    player = Player(tools=RESPONSES_TOOLS, include=["reasoning.encrypted_content"])
    plan = (
        'use apply_patch with {"input": "*** Begin"} and use agents.wait with {"n": 2}'
        ' and use shell with {"commands": ["ls"]} then say done'
    )
    calls = [item for item in player.say(model, plan)["output"] if item["type"].endswith("_call")]
    assert [item["type"] for item in calls] == ["custom_tool_call", "function_call", "shell_call"]
    assert calls[0]["input"] == "*** Begin"
    assert (calls[1]["name"], calls[1]["namespace"]) == ("wait", "agents")
    assert calls[2]["action"]["commands"] == ["ls"]


@pytest.mark.parametrize("stream", [True, False])
def test_g3_a_long_session_is_compacted_and_goes_on(stream: bool) -> None:
    model = "gemini-3.8-flash"
    player = Player(tools=RESPONSES_TOOLS, reasoning={"summary": "auto"}, stream=stream)
    player.play([RESPONSES_PLANS[1]], [model])
    response = player.turn(model, [{"type": "compaction_trigger"}])
    (item,) = response["output"]
    assert item["type"] == "compaction"
    player.history = [item]
    player.play([RESPONSES_PLANS[0]], [model])
    assert player.sentinels == 0
