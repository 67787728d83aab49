"""Many turns of the Responses API with the emulator, its own answers fed back: never a refusal."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.dialects.openai_responses.playing import MODELS, Player, answer_calls

Json = dict[str, Any]

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
TOOLS: list[Json] = [
    {"type": "function", "name": "read", "parameters": SCHEMA, "strict": False},
    {
        "type": "custom",
        "name": "apply_patch",
        "format": {"type": "grammar", "syntax": "lark", "definition": "s"},
    },
    {
        "type": "namespace",
        "name": "agents",
        "description": "Helpers.",
        "tools": [{"type": "function", "name": "wait", "parameters": SCHEMA}],
    },
    {"type": "function", "name": "mcp__" + "x" * 86, "parameters": SCHEMA},
    {"type": "shell"},
]
PLANS = (
    'think "hm" then use read with {"n": 1} then say done',
    'use read with {"n": 1} and use agents.wait with {"n": 2} then use apply_patch with {"input": "x"} then say done',
    'say first then use shell with {"commands": ["ls"]} then use read with {"n": 2} and use read with {"n": 3}',
    "just say hello",
    "tell me a story",
)
MODERN = [model for model in MODELS if not model.startswith("gemini-2")]
THIRD = [model for model in MODERN if "gemini-4" not in model]
REASONING = st.sampled_from(
    [
        {"reasoning": {"summary": "auto"}, "include": ["reasoning.encrypted_content"]},
        {"reasoning": {"effort": "low"}},
        {"reasoning": {"effort": "none"}, "include": ["reasoning.encrypted_content"]},
        {},
    ]
)
TURNS = st.lists(st.sampled_from(PLANS), min_size=1, max_size=3)


def _examples(number: int) -> settings:
    return settings(max_examples=number, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def play(player: Player, plans: list[str], models: list[str]) -> int:
    """Every plan to its end, another model for every request; how many calls were made."""
    calls = turns = 0
    for plan in plans:
        response = player.turn(models[turns % len(models)], plan)
        while results := answer_calls(response):
            calls += len(results)
            turns += 1
            response = player.turn(models[turns % len(models)], results)
        turns += 1
        assert response["status"] == "completed"
        assert any(item["type"] == "message" for item in response["output"])
    return calls


@_examples(30)
@given(
    plans=TURNS,
    model=st.sampled_from(MODELS),
    fields=REASONING,
    keeps=st.tuples(st.booleans(), st.booleans()).filter(any),
    stream=st.booleans(),
)
def test_a1_a11_one_model_and_one_carrier_never_need_the_sentinel(
    plans: list[str], model: str, fields: Json, keeps: tuple[bool, bool], stream: bool
) -> None:
    keeps_reasoning, keeps_store = keeps
    player = Player(
        keeps_reasoning=keeps_reasoning,
        keeps_store=keeps_store or not fields,  # without reasoning items the store is the only carrier
        stream=stream,
        tools=TOOLS,
        **fields,
    )
    play(player, plans, [model])
    assert player.sentinels == 0


@_examples(30)
@given(
    plans=TURNS,
    models=st.lists(st.sampled_from(MODELS), min_size=2, max_size=5),
    fields=REASONING,
    keeps_reasoning=st.booleans(),
    keeps_store=st.booleans(),
    stream=st.booleans(),
)
def test_a6_a9_any_switch_of_models_with_any_loss_is_accepted(
    plans: list[str], models: list[str], fields: Json, keeps_reasoning: bool, keeps_store: bool, stream: bool
) -> None:
    player = Player(
        keeps_reasoning=keeps_reasoning, keeps_store=keeps_store, stream=stream, tools=TOOLS, **fields
    )
    play(player, plans, models)


def test_a1_models_of_one_family_trust_each_other() -> None:
    player = Player(tools=TOOLS, reasoning={"summary": "auto"})
    assert play(player, list(PLANS), THIRD) > 5
    assert player.sentinels == 0


def test_a8_without_any_carrier_the_sentinel_keeps_the_session_alive() -> None:
    player = Player(keeps_reasoning=False, keeps_store=False, tools=TOOLS, reasoning={"effort": "low"})
    play(player, [PLANS[1]], ["gemini-3.8-flash"])
    assert player.sentinels == 3  # one step in the second request, two in the third


@pytest.mark.parametrize("model", MODELS)
def test_g1_every_tool_is_called_in_its_own_shape(model: str) -> None:
    player = Player(tools=TOOLS, include=["reasoning.encrypted_content"])
    plan = (
        'use apply_patch with {"input": "*** Begin"} and use agents.wait with {"n": 2}'
        ' and use shell with {"commands": ["ls"]} then say done'
    )
    calls = [item for item in player.turn(model, plan)["output"] if item["type"].endswith("_call")]
    assert [item["type"] for item in calls] == ["custom_tool_call", "function_call", "shell_call"]
    assert calls[0]["input"] == "*** Begin"
    assert (calls[1]["name"], calls[1]["namespace"]) == ("wait", "agents")
    assert calls[2]["action"]["commands"] == ["ls"]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_rewinds_and_forks_goes_on(model: str, stream: bool) -> None:
    player = Player(tools=TOOLS, reasoning={"summary": "auto"}, stream=stream)
    response = player.turn(model, PLANS[1])
    kept = len(player.items)
    player.turn(model, answer_calls(response))
    del player.items[kept:]
    play(player, ["just say hello"], [model])  # the calls have no results any more
    del player.items[1:]
    play(player, [PLANS[0]], [model])
    assert player.sentinels == 0


@pytest.mark.parametrize("model", MODELS)
def test_any_slicing_of_the_emulators_bytes(model: str) -> None:
    def single(data: bytes) -> list[bytes]:
        return [data[i : i + 1] for i in range(len(data))]

    one, other = (Player(tools=TOOLS, reasoning={"summary": "auto"}) for _ in range(2))
    assert one.turn(model, PLANS[1]) == other.turn(model, PLANS[1], single)


@pytest.mark.parametrize("stream", [True, False])
def test_g3_a_long_session_is_compacted_and_goes_on(stream: bool) -> None:
    model = "gemini-3.8-flash"
    player = Player(tools=TOOLS, reasoning={"summary": "auto"}, stream=stream)
    play(player, [PLANS[1]], [model])
    response = player.turn(model, [{"type": "compaction_trigger"}])
    (item,) = response["output"]
    assert item["type"] == "compaction"
    player.items = [item]
    play(player, [PLANS[0]], [model])
    assert player.sentinels == 0
