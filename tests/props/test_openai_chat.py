"""What always holds between a Chat client and Google, whatever either of them says."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.dialects import openai_chat
from dragoman.dialects.base import Target
from dragoman.dialects.gemini import tools as declarations_module
from dragoman.dialects.openai_chat import decode as decode_module
from dragoman.dialects.openai_chat import tools as tools_module
from dragoman.exchange import Exchange
from dragoman.ir import Message
from dragoman.memo import Memo
from dragoman.repair import history as history_module
from tests.corpus import check
from tests.props.test_exchange_properties import BREAKS, CHUNKS, ENDS
from tests.unit.dialects.anthropic.playing import MODELS, refusal
from tests.unit.dialects.openai_chat.inventing import conversations
from tests.unit.dialects.openai_chat.playing import Player, answer_calls
from tests.unit.dialects.openai_chat.streaming import folded, tidy

Json = dict[str, Any]

_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large)


def _examples(number: int) -> settings:
    return settings(max_examples=number, deadline=None, suppress_health_check=_SLOW)


def _exchange(request: Json, model: str) -> tuple[Exchange, bytes]:
    # A stream takes its own id first, a whole answer last: this way their calls have the same ids.
    tokens = iter(range(-1 if request.get("stream") else 0, 10**6))
    exchange = Exchange(openai_chat, new_token=lambda: f"{next(tokens):016d}", created_s=1)
    exchange.decode(json.dumps(request).encode())
    return exchange, exchange.encode(Target(model=model))


@pytest.mark.parametrize("model", MODELS)
@_examples(30)
@given(request=conversations())
def test_the_emulator_accepts_whatever_we_send(model: str, request: Json) -> None:
    _, body = _exchange(request, model)
    assert refusal(model, body) == ""
    sent = json.loads(body)
    assert check.request_problems(sent) == []
    assert check.history_problems(sent) == []


@_examples(40)
@given(request=conversations())
def test_every_call_and_result_arrives(request: Json) -> None:
    _, body = _exchange(request, "gemini-3.8-flash")
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


@pytest.mark.parametrize("model", ["gemini-2.5-flash", "gemini-3.8-flash"])
@_examples(20)
@given(request=conversations())
def test_caches_change_nothing(model: str, request: Json) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for module, name in (
            (decode_module, "_MESSAGES"),
            (tools_module, "_TOOL_SETS"),
            (declarations_module, "_DECLARATIONS"),
            (declarations_module, "_PARAMETERS"),
        ):
            patch.setattr(module, name, Memo(max_bytes=0))
        patch.setattr(Message, "notebook", property(lambda _message: {}))
        cold, without = _exchange(request, model)
        patch.setattr(history_module, "sound_history", lambda *_args, **_more: None)
        _, the_long_way = _exchange(request, model)
    assert the_long_way == without
    warm, body = _exchange(request, model)
    again, same = _exchange(request, model)
    assert body == same == without
    assert cold.notes == warm.notes == again.notes
    assert cold.request == warm.request == again.request


REQUEST: Json = {
    "model": "gpt-x",
    "messages": [{"role": "user", "content": "q"}],
    "stream_options": {"include_usage": True},
}
FUNCTIONS = [{"name": "Read", "parameters": {"type": "object"}}, {"name": "Bash"}]
FORMS = st.sampled_from(
    [
        {"tools": [{"type": "function", "function": function} for function in FUNCTIONS]},
        {"tools": [{"type": "custom", "custom": {"name": "Read"}}]},
        {"functions": FUNCTIONS},
    ]
)
THINKING = st.sampled_from([{}, {"reasoning_effort": "high"}, {"reasoning_effort": "none"}])


def _client_bytes(request: Json, pieces: list[bytes]) -> tuple[bytes, Any]:
    exchange, _ = _exchange(request, "gemini-3.8-flash")
    out = exchange.open() + b"".join(map(exchange.receive, pieces)) + exchange.finish()
    return out, (exchange.memories, exchange.facts, exchange.notes)


def _sse(chunks: list[Json]) -> bytes:
    return b"".join(b"data: %b\r\n\r\n" % json.dumps(chunk).encode() for chunk in chunks)


def _cut(data: bytes, places: list[int]) -> list[bytes]:
    marks = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(marks)]


@_examples(40)
@given(
    chunks=CHUNKS,
    end=st.one_of(ENDS.map(lambda end: [end]), BREAKS),
    fields=THINKING,
    form=FORMS,
    stream=st.booleans(),
    places=st.lists(st.integers(0, 10**6), max_size=12),
)
def test_any_slicing_of_the_upstream_gives_the_same_bytes(
    chunks: list[Json], end: list[Json], fields: Json, form: Json, stream: bool, places: list[int]
) -> None:
    request = {**REQUEST, **fields, **form, "stream": stream}
    data = _sse(chunks + end)
    expected = _client_bytes(request, [data])
    assert _client_bytes(request, _cut(data, places)) == expected
    assert _client_bytes(request, [data[i : i + 1] for i in range(len(data))]) == expected


@_examples(100)
@given(chunks=CHUNKS, end=ENDS, fields=THINKING, form=FORMS)
def test_a_stream_put_together_by_openais_accumulator_equals_the_whole_answer(
    chunks: list[Json], end: Json, fields: Json, form: Json
) -> None:
    data = _sse([*chunks, end])
    asked = {**REQUEST, **fields, **form}
    streamed, (remembered, facts, _) = _client_bytes({**asked, "stream": True}, [data])
    whole, (remembered_too, facts_too, _) = _client_bytes({**asked, "stream": False}, [data])
    assert folded(streamed) | {"id": ""} == tidy(json.loads(whole)) | {"id": ""}
    assert (remembered, facts) == (remembered_too, facts_too)


TOOLS = [
    {"name": name, "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}
    for name in ("Read", "Bash", "mcp__" + "x" * 86)
]
NEWER: Json = {"tools": [{"type": "function", "function": tool} for tool in TOOLS]}
PLANS = (
    'think "hm" then use Read with {"n": 1} then say done',
    'use Read with {"n": 1} and use Bash with {"n": 2} then use Bash with {"n": 3} then say done',
    'say first then use Bash with {"n": 1} then use Read with {"n": 2} and use Read with {"n": 3}',
    "just say hello",
    "tell me a story",
)
TURNS = st.lists(st.sampled_from(PLANS), min_size=1, max_size=3)


def play(player: Player, plans: list[str], models: list[str]) -> int:
    """Every plan to its end, another model for every request; how many calls were made."""
    calls = turns = 0
    for plan in plans:
        message, reason = player.say(models[turns % len(models)], plan)
        while results := answer_calls(message):
            assert reason == ("function_call" if "function_call" in message else "tool_calls")
            calls += len(results)
            turns += 1
            message, reason = player.turn(models[turns % len(models)], results)
        turns += 1
        assert reason == "stop"
        assert message["content"]
    return calls


@_examples(40)
@given(
    plans=TURNS,
    model=st.sampled_from(MODELS),
    fields=THINKING,
    keeps=st.tuples(st.booleans(), st.booleans()).filter(any),
    stream=st.booleans(),
)
def test_a1_a11_one_model_and_one_carrier_never_need_the_sentinel(
    plans: list[str], model: str, fields: Json, keeps: tuple[bool, bool], stream: bool
) -> None:
    keeps_extras, keeps_store = keeps
    player = Player(keeps_extras=keeps_extras, keeps_store=keeps_store, stream=stream, **NEWER, **fields)
    play(player, plans, [model])
    assert player.sentinels == 0


@_examples(30)
@given(
    plans=TURNS,
    models=st.lists(st.sampled_from(MODELS), min_size=2, max_size=5),
    keeps_extras=st.booleans(),
    keeps_store=st.booleans(),
    stream=st.booleans(),
    fields=THINKING,
    tools=st.sampled_from([NEWER, {"functions": TOOLS}]),
)
def test_a6_a9_any_switch_of_models_with_any_loss_is_accepted(
    plans: list[str],
    models: list[str],
    keeps_extras: bool,
    keeps_store: bool,
    stream: bool,
    fields: Json,
    tools: Json,
) -> None:
    player = Player(keeps_extras=keeps_extras, keeps_store=keeps_store, stream=stream, **tools, **fields)
    play(player, plans, models)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("model", MODELS)
def test_the_older_form_carries_its_signature_in_the_message(model: str, stream: bool) -> None:
    player = Player(keeps_store=False, stream=stream, functions=TOOLS)
    assert play(player, [PLANS[0], PLANS[0]], [model]) == 2
    assert player.sentinels == 0


def test_a8_without_any_carrier_the_sentinel_keeps_the_session_alive() -> None:
    player = Player(keeps_extras=False, keeps_store=False, **NEWER)
    play(player, [PLANS[1]], ["gemini-3.8-flash"])
    assert player.sentinels == 3  # one step in the second request, two in the third


def test_g1_custom_tools_make_the_round_with_their_text() -> None:
    player = Player(tools=[{"type": "custom", "custom": {"name": "patch"}}])
    message, reason = player.say("gemini-3.8-flash", 'use patch with {"input": "*** a\\n"} then say done')
    (found,) = message["tool_calls"]
    assert (reason, found["custom"]) == ("tool_calls", {"name": "patch", "input": "*** a\n"})
    message, reason = player.turn("gemini-3.8-flash", answer_calls(message))
    assert (reason, message["content"]) == ("stop", "done")
    assert player.sentinels == 0


@pytest.mark.parametrize("model", MODELS)
def test_any_slicing_of_the_emulators_bytes(model: str) -> None:
    def single(data: bytes) -> list[bytes]:
        return [data[i : i + 1] for i in range(len(data))]

    one, other = Player(**NEWER), Player(**NEWER)
    assert one.say(model, PLANS[1]) == other.say(model, PLANS[1], single)
