"""What holds for Amazon's clients alone; the rest in `test_exchange_properties` and `test_exchange_play`."""

from __future__ import annotations

import copy
import functools
import json
import operator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.dialects.amazonq import AmazonQ
from dragoman.dialects.amazonq.decode import Echo
from dragoman.dialects.base import Answer
from dragoman.errors import InvalidRequest, UpstreamError
from dragoman.ir import (
    AFTER_TEXT,
    ON_TEXT,
    ON_THOUGHT,
    Event,
    Failed,
    Finished,
    Native,
    Signature,
    SignatureDelta,
    Started,
    StopReason,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    Usage,
    collect,
)
from tests.corpus import check
from tests.props.dialect_cases import WIRES
from tests.props.exchange_harness import ANY_END, CHUNKS, sse
from tests.props.hypothesis_settings import examples
from tests.props.scripted_players import AMAZON_THINKING, PLANS, Q_TOOLS, SEATS
from tests.unit.dialects.amazonq.scripted_client import Player
from tests.unit.dialects.amazonq.strict_reader import read
from tests.unit.dialects.anthropic.strategies import ARGS, VALUES, WORDS
from tests.unit.dialects.scripted_client import MODELS

Json = dict[str, Any]

SEAT, WIRE = SEATS["amazonq"], WIRES["amazonq"]


@examples(40)
@given(request=WIRE.conversations)
def test_every_call_and_result_arrives_under_its_tools_name(request: Json) -> None:
    _, body = WIRE.exchange(request, "gemini-3.8-flash")
    parts = [part for content in json.loads(body)["contents"] for part in content["parts"]]
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
    state = request["conversationState"]
    uses = [
        one
        for message in state["history"]
        for one in message.get("assistantResponseMessage", {}).get("toolUses", ())
    ]
    assert [call["id"] for call in calls] == [one["toolUseId"] for one in uses]
    assert [call["args"] for call in calls] == [one["input"] or {} for one in uses]
    assert [(call["id"], call["name"]) for call in calls] == [(one["id"], one["name"]) for one in answers]


def _places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every node below the root."""
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    below = [(*place, key) for key, _ in members]
    return [*below, *(found for key, item in members for found in _places(item, (*place, key)))]


@examples(150)
@given(request=WIRE.conversations, where=st.integers(0, 10**6), odd=VALUES)
def test_n7_whatever_is_wrong_is_named_or_understood(request: Json, where: int, odd: Any) -> None:
    places = _places(request)
    place = places[where % len(places)]
    spoilt: Any = copy.deepcopy(request)
    holder = functools.reduce(operator.getitem, place[:-1], spoilt)
    holder[place[-1]] = odd
    assert _understood(spoilt)


def _understood(request: Json) -> bool:
    """As a sound request for Google, or as a mistake with its place."""
    try:
        _, body = WIRE.exchange(request, "gemini-3.8-flash")
    except InvalidRequest as error:
        return bool(error.where)
    return not check.request_problems(json.loads(body))


@examples(100)
@given(chunks=CHUNKS, end=ANY_END, question=WIRE.questions)
def test_the_rust_client_reads_whatever_google_says(
    chunks: list[Json], end: list[Json], question: Json
) -> None:
    out, (_, facts, _) = WIRE.client_bytes(question, [sse(chunks + end)], stream=True)
    assert [used.name for used in read(out).tools] == facts.calls


SIGNATURES = st.builds(Signature, st.sampled_from(["YQ", "Yg"]), st.just("gemini-g3"))
CALLS = st.tuples(
    st.sampled_from(["Read", "a.b"]), ARGS.map(lambda args: json.dumps(args).encode()), st.none() | SIGNATURES
)
ITEMS: st.SearchStrategy[Any] = st.one_of(
    WORDS.map(TextDelta),
    WORDS.map(ThoughtDelta),
    st.builds(SignatureDelta, SIGNATURES, st.sampled_from([ON_TEXT, AFTER_TEXT, ON_THOUGHT])),
    st.builds(Usage, input_tokens=st.integers(0, 99), output_tokens=st.integers(0, 99)),
    st.just(Native(json=b"{}")),
    CALLS,
)


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    """Any legal order of events; a failure may come anywhere, inside a call too."""
    events: list[Event] = [Started("m", "r")]
    for number, item in enumerate(draw(st.lists(ITEMS, max_size=8))):
        if not isinstance(item, tuple):
            events.append(item)
            continue
        name, args, signature = item
        events.append(ToolCall(id=f"t{number}", name=name, args=args, signature=signature))
    called = any(isinstance(event, ToolCall) for event in events)
    reason: StopReason = draw(st.sampled_from(["max_tokens", "blocked", "tool_calls" if called else "end"]))
    events.append(Finished(reason=reason, raw="RAW"))
    if draw(st.booleans()):
        events[draw(st.integers(1, len(events) - 1)) :] = [Failed(UpstreamError("m", kind="overloaded"))]
    return events


@examples(200)
@given(events=streams(), asked=st.booleans(), kiro=st.booleans(), pings=st.booleans())
def test_the_rust_client_reads_every_legal_stream(
    events: list[Event], asked: bool, kiro: bool, pings: bool
) -> None:
    answer = Answer(
        id="u", model="m", with_thinking=asked, context_tokens=100, echo=Echo(conversation_id="c", kiro=kiro)
    )
    stream = AmazonQ().stream(answer)
    out = stream.open()
    for event in events:
        out += stream.feed(event)
        if pings and event is not events[-1]:
            out += stream.ping()
    found = read(out)
    if found.failure:
        return
    whole = collect(events)
    assert found.calls == [(part.name, part.arguments) for part in whole.parts if isinstance(part, ToolCall)]
    assert len(found.signatures) <= 1
    if not asked:
        assert (found.thoughts, found.signatures) == ("", [])


@examples(40)
@given(
    plans=SEAT.turns(),
    model=st.sampled_from(MODELS),
    fields=SEAT.settings,
    keeps_own=st.booleans(),
)
def test_a1_the_store_knows_the_signatures_by_the_ids_of_the_tool_uses(
    plans: list[str], model: str, fields: Json, keeps_own: bool
) -> None:
    player = Player(Q_TOOLS, keeps_own=keeps_own, **fields)
    player.play(plans, [model])
    assert player.sentinels == 0


@examples(40)
@given(plans=SEAT.turns(), model=st.sampled_from(MODELS))
def test_a11_kiro_carries_them_itself_when_the_store_is_lost(plans: list[str], model: str) -> None:
    player = Player(Q_TOOLS, keeps_store=False, **AMAZON_THINKING)
    player.play(plans, [model])
    assert player.sentinels == 0


def test_a8_nobody_carries_anything_without_thinking_and_a_store() -> None:
    player = Player(Q_TOOLS, keeps_own=False, keeps_store=False)
    player.play([PLANS[1]], ["gemini-3.8-flash"])
    assert player.sentinels == 3  # one step in the second request, two in the third


@pytest.mark.parametrize("model", MODELS)
def test_tools_refused_with_a_new_prompt_keep_the_conversation_going(model: str) -> None:
    player = Player(Q_TOOLS)
    reading = player.say(model, PLANS[1])
    reading = player.answer(model, reading, content="just say hello")
    assert reading.stop_reason == "END_TURN"
    assert player.play([PLANS[0]], [model]) == 1
