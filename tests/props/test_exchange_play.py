"""Many turns with the emulator, its own answers fed back as a real client would: never a refusal."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.dialects.anthropic.playing import MODELS, Player, answer_calls

Json = dict[str, Any]

TOOLS = [
    {"name": name, "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}}}
    for name in ("Read", "Bash", "mcp__" + "x" * 86)
]
PLANS = (
    'think "hm" then use Read with {"n": 1} then say done',
    'use Read with {"n": 1} and use Bash with {"n": 2} then use Bash with {"n": 3} then say done',
    'say first then use Bash with {"n": 1} then use Read with {"n": 2} and use Read with {"n": 3}',
    "just say hello",
    "tell me a story",
)
MODERN = [model for model in MODELS if not model.startswith("gemini-2")]
THIRD = [model for model in MODERN if "gemini-4" not in model]
THINKING = st.sampled_from([{"thinking": {"type": "adaptive"}}, {"thinking": {"type": "disabled"}}, {}])
TURNS = st.lists(st.sampled_from(PLANS), min_size=1, max_size=3)
REMARK = {"type": "text", "text": "<system-reminder>\nremember\n</system-reminder>"}


def _examples(number: int) -> settings:
    return settings(max_examples=number, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def play(player: Player, plans: list[str], models: list[str], beside: list[Json]) -> int:
    """Every plan to its end, another model for every request; how many calls were made."""
    calls = turns = 0
    for plan in plans:
        message = player.turn(models[turns % len(models)], plan)
        while results := answer_calls(message):
            calls += len(results)
            turns += 1
            message = player.turn(models[turns % len(models)], [*results, *beside])
        turns += 1
        assert message["stop_reason"] == "end_turn"
        assert any(block["type"] == "text" for block in message["content"])
    return calls


@_examples(40)
@given(
    plans=TURNS,
    model=st.sampled_from(MODELS),
    fields=THINKING,
    keeps=st.tuples(st.booleans(), st.booleans()).filter(any),
    stream=st.booleans(),
    beside=st.sampled_from([[], [REMARK]]),
)
def test_a1_a11_one_model_and_one_carrier_never_need_the_sentinel(
    plans: list[str], model: str, fields: Json, keeps: tuple[bool, bool], stream: bool, beside: list[Json]
) -> None:
    keeps_thinking, keeps_store = keeps
    if fields.get("thinking") != {"type": "adaptive"}:
        keeps_store = True  # without thinking blocks the store is the only carrier
    player = Player(
        keeps_thinking=keeps_thinking, keeps_store=keeps_store, stream=stream, tools=TOOLS, **fields
    )
    play(player, plans, [model], beside)
    assert player.sentinels == 0


@_examples(30)
@given(plans=TURNS, models=st.lists(st.sampled_from(THIRD), min_size=2, max_size=4), fields=THINKING)
def test_a1_models_of_one_family_trust_each_other(plans: list[str], models: list[str], fields: Json) -> None:
    player = Player(tools=TOOLS, **fields)
    play(player, plans, models, [])
    assert player.sentinels == 0


@_examples(40)
@given(
    plans=TURNS,
    models=st.lists(st.sampled_from(MODELS), min_size=2, max_size=5),
    fields=THINKING,
    keeps_thinking=st.booleans(),
    keeps_store=st.booleans(),
    stream=st.booleans(),
)
def test_a6_a9_any_switch_of_models_with_any_loss_is_accepted(
    plans: list[str], models: list[str], fields: Json, keeps_thinking: bool, keeps_store: bool, stream: bool
) -> None:
    player = Player(
        keeps_thinking=keeps_thinking, keeps_store=keeps_store, stream=stream, tools=TOOLS, **fields
    )
    play(player, plans, models, [])


def test_a6_a_switch_in_the_middle_of_a_turn_needs_one_sentinel_for_each_foreign_step() -> None:
    player = Player(tools=TOOLS, thinking={"type": "adaptive"})
    plan = 'use Read with {"n": 1} then use Read with {"n": 2} then use Read with {"n": 3} then say done'
    message = player.turn("gemini-3.8-flash", plan)
    assert player.sentinels == 0
    message = player.turn("gemini-4-argon", answer_calls(message))
    assert player.sentinels == 1  # the first step is foreign to g4
    message = player.turn("gemini-4-argon", answer_calls(message))
    assert player.sentinels == 2  # still the first step; the second is its own
    message = player.turn("gemini-2.5-flash", answer_calls(message))
    assert player.sentinels == 2  # 2.5 asks for none
    assert message["stop_reason"] == "end_turn"


def test_a8_without_any_carrier_the_sentinel_keeps_the_session_alive() -> None:
    player = Player(keeps_thinking=False, keeps_store=False, tools=TOOLS, thinking={"type": "adaptive"})
    play(player, [PLANS[1]], ["gemini-3.8-flash"], [])
    assert player.sentinels == 3  # one step in the second request, two in the third


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_rewinds_and_forks_goes_on(model: str, stream: bool) -> None:
    player = Player(tools=TOOLS, thinking={"type": "adaptive"}, stream=stream)
    message = player.turn(model, PLANS[1])
    player.turn(model, answer_calls(message))
    del player.messages[2:]
    play(player, ["just say hello"], [model], [])  # the calls have no results any more
    del player.messages[1:]
    play(player, [PLANS[0]], [model], [])
    assert player.sentinels == 0


@pytest.mark.parametrize("model", MODELS)
def test_any_slicing_of_the_emulators_bytes(model: str) -> None:
    def single(data: bytes) -> list[bytes]:
        return [data[i : i + 1] for i in range(len(data))]

    one, other = (Player(tools=TOOLS, thinking={"type": "adaptive"}) for _ in range(2))
    assert one.turn(model, PLANS[1]) == other.turn(model, PLANS[1], single)
