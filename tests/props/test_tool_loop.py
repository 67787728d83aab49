"""Tools of the gateway's own behind every dialect: the client sees a legal answer, Google the whole story."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.ir.grammar import check_events
from dragoman.translation.tool_loop import LoopLimits
from tests.props.gateway_tool_clients import SPEAKERS, Call, House, Seen
from tests.props.hypothesis_settings import examples
from tests.unit.dialects.scripted_client import MODELS

Json = dict[str, Any]

OWN = ("look", "mcp__" + "x" * 80)
THEIRS = ("Read", "Bash")
TONGUES = st.sampled_from(sorted(SPEAKERS))
MODEL = "gemini-3.8-flash"


class Step(msgspec.Struct, frozen=True):
    """Calls that the model makes together, and what it says before them."""

    says: str
    uses: tuple[str, ...]


STEPS = st.builds(
    Step,
    st.sampled_from(["", "so far so good", "well"]),
    st.lists(st.sampled_from(OWN + THEIRS), min_size=1, max_size=4).map(tuple),
)
TURNS = st.lists(st.lists(STEPS, max_size=4), min_size=1, max_size=3)


def plan(steps: list[Step], first: int) -> str:
    """Every call with a number of its own, so that none can be taken for another."""
    numbers = iter(range(first, first + 100))
    words = []
    for step in steps:
        uses = " and ".join(f'use {name[:40]} with {{"n": {next(numbers)}}}' for name in step.uses)
        words.append(f"say {json.dumps(step.says)} then {uses}" if step.says else uses)
    return " then ".join([*words, 'say "all done"'])


def talk(house: House, turns: list[list[Step]], models: list[str]) -> list[Seen]:
    """Every turn to its end; the client answers its calls, the last one first."""
    seen: list[Seen] = []
    first = 0
    requests = 0
    for steps in turns:
        house.speaker.say(plan(steps, first))
        first += sum(len(step.uses) for step in steps)
        while True:
            seen.append(house.turn(models[requests % len(models)]))
            requests += 1
            if not seen[-1].calls:
                break
            house.speaker.answer([(call, f"{call.name} is done") for call in reversed(seen[-1].calls)])
    return seen


def numbered(turns: list[list[Step]]) -> list[tuple[str, int]]:
    uses = [name for steps in turns for step in steps for name in step.uses]
    return [(name, number) for number, name in enumerate(uses)]


def numbers(calls: list[Call]) -> list[tuple[str, int]]:
    return [(call.name, call.args["n"]) for call in calls]


def said_upstream(house: House) -> list[int]:
    """The numbers of all calls in the last request, in their order."""
    parts = [part for content in house.sent[-1]["contents"] for part in content["parts"]]
    return [part["functionCall"]["args"]["n"] for part in parts if "functionCall" in part]


@examples(120)
@given(
    tongue=TONGUES,
    turns=TURNS,
    model=st.sampled_from(MODELS),
    stream=st.booleans(),
    keeps_thinking=st.booleans(),
)
def test_any_order_of_calls_over_any_rounds_loses_and_doubles_nothing(
    tongue: str, turns: list[list[Step]], model: str, stream: bool, keeps_thinking: bool
) -> None:
    house = House(SPEAKERS[tongue](), own=OWN, theirs=THEIRS, stream=stream, keeps_thinking=keeps_thinking)
    seen = talk(house, turns, [model])
    every = numbered(turns)
    shown = [pair for answer in seen for pair in numbers(answer.calls)]
    assert shown == [pair for pair in every if pair[0] in THEIRS]
    ran = [(call.name, json.loads(call.args)["n"]) for call in house.ran]
    assert ran == [pair for pair in every if pair[0] in OWN]
    assert said_upstream(house) == [number for _, number in every]
    assert house.sentinels == 0
    words = "".join("".join(answer.text.split()) for answer in seen)
    told = [step.says for steps in turns for step in [*steps, Step("all done", ())]]
    assert words == "".join("".join(text.split()) for text in told)
    for answer in seen:
        assert answer.finish == ("calls" if answer.calls else "end")


@examples(60)
@given(
    tongue=TONGUES,
    turns=TURNS,
    models=st.lists(st.sampled_from(MODELS), min_size=1, max_size=4),
    stream=st.booleans(),
    keeps_thinking=st.booleans(),
    keeps_store=st.booleans(),
)
def test_whatever_is_lost_google_takes_every_request(
    tongue: str,
    turns: list[list[Step]],
    models: list[str],
    stream: bool,
    keeps_thinking: bool,
    keeps_store: bool,
) -> None:
    house = House(
        SPEAKERS[tongue](),
        own=OWN,
        theirs=THEIRS,
        stream=stream,
        keeps_thinking=keeps_thinking,
        keeps_store=keeps_store,
    )
    # What a Gemini client brings back is Google's to judge; the relay then sends it without.
    for answer in talk(house, turns, models[:1] if tongue == "gemini" else models):
        assert not {call.name for call in answer.calls} & set(OWN)
        assert answer.finish == ("calls" if answer.calls else "end")


@examples(40)
@given(tongue=TONGUES, turns=TURNS, stream=st.booleans())
def test_what_the_client_gets_keeps_the_order_of_events(
    tongue: str, turns: list[list[Step]], stream: bool
) -> None:
    house = House(SPEAKERS[tongue](), own=OWN, theirs=THEIRS, stream=stream, keep=True)
    talk(house, turns, [MODEL])
    for exchange in house.exchanges:
        assert check_events(exchange.client_events) is None


@examples(40)
@given(tongue=TONGUES, turns=TURNS)
def test_a_stream_and_a_whole_answer_say_the_same(tongue: str, turns: list[list[Step]]) -> None:
    one, other = (
        House(SPEAKERS[tongue](), own=OWN, theirs=THEIRS, stream=stream) for stream in (True, False)
    )
    streamed, whole = (talk(house, turns, [MODEL]) for house in (one, other))
    assert [(seen.text, numbers(seen.calls), seen.tokens) for seen in streamed] == [
        (seen.text, numbers(seen.calls), seen.tokens) for seen in whole
    ]


@pytest.mark.parametrize("tongue", SPEAKERS)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("theirs", [THEIRS, ()], ids=["beside tools", "alone"])
def test_a_model_that_goes_on_and_on_is_told_and_answers(
    tongue: str, model: str, theirs: tuple[str, ...]
) -> None:
    steps = [Step("", ("look",)) for _ in range(9)]
    house = House(SPEAKERS[tongue](), own=OWN, theirs=theirs, limits=LoopLimits(max_rounds=3))
    house.speaker.say(plan(steps, 0))
    seen = house.turn(model)
    assert [json.loads(call.args)["n"] for call in house.ran] == [0, 1, 2]
    assert seen.finish == "end"
    assert seen.text
    last = json.dumps(house.sent[-1])
    assert "No more tools of this kind" in last
    declared = [tool for tools in house.sent[-1].get("tools", ()) for tool in tools["functionDeclarations"]]
    assert sorted(tool["name"] for tool in declared) == sorted(theirs)
