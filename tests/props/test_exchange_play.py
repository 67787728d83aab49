"""Many turns with the emulator, its own answers fed back as a real client would: never a refusal."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.props.exchange_harness import single_bytes
from tests.props.hypothesis_settings import examples
from tests.props.scripted_players import ANTHROPIC_TOOLS, SEATS, THINKING, THIRD
from tests.unit.dialects.anthropic.scripted_client import Player, answer_calls
from tests.unit.dialects.scripted_client import MODELS

Json = dict[str, Any]

every_dialect = pytest.mark.parametrize("dialect", SEATS)


@pytest.mark.parametrize("dialect", ["anthropic", "openai_chat", "openai_responses", "bedrock"])
@examples(40)
@given(
    data=st.data(),
    model=st.sampled_from(MODELS),
    keeps=st.tuples(st.booleans(), st.booleans()).filter(any),
    stream=st.booleans(),
)
def test_a1_a11_one_model_and_one_carrier_never_need_the_sentinel(
    dialect: str, data: st.DataObject, model: str, keeps: tuple[bool, bool], stream: bool
) -> None:
    seat = SEATS[dialect]
    settings = data.draw(seat.settings)
    keeps_own, keeps_store = keeps
    if not seat.carries(settings):
        keeps_store = True  # without reasoning in the answers the store is the only carrier
    player = seat.player(keeps_own=keeps_own, keeps_store=keeps_store, stream=stream, **settings)
    player.play(data.draw(seat.turns()), [model])
    assert player.sentinels == 0


@examples(30)
@given(
    plans=SEATS["anthropic"].turns(),
    models=st.lists(st.sampled_from(THIRD), min_size=2, max_size=4),
    settings=SEATS["anthropic"].settings,
)
def test_a1_models_of_one_family_trust_each_other(
    plans: list[str], models: list[str], settings: Json
) -> None:
    player = Player(**settings)
    player.play(plans, models)
    assert player.sentinels == 0


@every_dialect
@examples(40)
@given(
    data=st.data(),
    models=st.lists(st.sampled_from(MODELS), min_size=2, max_size=5),
    keeps_own=st.booleans(),
    keeps_store=st.booleans(),
    stream=st.booleans(),
)
def test_a6_a9_any_switch_of_models_with_any_loss_is_accepted(
    dialect: str, data: st.DataObject, models: list[str], keeps_own: bool, keeps_store: bool, stream: bool
) -> None:
    seat = SEATS[dialect]
    settings = data.draw(seat.settings | seat.more_settings)
    player = seat.player(keeps_own=keeps_own, keeps_store=keeps_store, stream=stream, **settings)
    player.play(data.draw(seat.turns()), models)


def test_a6_a_switch_in_the_middle_of_a_turn_needs_one_sentinel_for_each_foreign_step() -> None:
    player = Player(tools=ANTHROPIC_TOOLS, **THINKING)
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


@every_dialect
def test_a8_without_any_carrier_the_sentinel_keeps_the_session_alive(dialect: str) -> None:
    seat = SEATS[dialect]
    player = seat.player(keeps_own=False, keeps_store=False, **seat.usual)
    player.play([seat.plans[1]], ["gemini-3.8-flash"])
    assert player.sentinels == 3  # one step in the second request, two in the third


@pytest.mark.parametrize("dialect", ["anthropic", "openai_responses"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_rewinds_and_forks_goes_on(dialect: str, model: str, stream: bool) -> None:
    seat = SEATS[dialect]
    player = seat.player(stream=stream, **seat.usual)
    heard = player.say(model, seat.plans[1])
    kept = len(player.history)
    player.answer(model, heard)
    del player.history[kept:]
    player.play(["just say hello"], [model])  # the calls have no results any more
    del player.history[1:]
    player.play([seat.plans[0]], [model])
    assert player.sentinels == 0


@every_dialect
@pytest.mark.parametrize("model", MODELS)
def test_any_slicing_of_the_emulators_bytes(dialect: str, model: str) -> None:
    seat = SEATS[dialect]
    one, other = seat.player(**seat.usual), seat.player(**seat.usual)
    assert one.say(model, seat.plans[1]) == other.say(model, seat.plans[1], single_bytes)
