"""Results that came later, in the history: behind the turn that stands for their calls, in front of what follows."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dragoman.tools.inject import (
    CallResult,
    CallStep,
    CapturedCall,
    ToolContext,
    captured_calls,
    continues_from,
    modify_request,
    placeholder,
    question_of,
)
from tests.unit.dialects.scripted_client import SENTINEL

Json = dict[str, Any]

RAIN = CapturedCall(id="call_r", name="weather", args={"city": "Oslo"}, sent_id="g1", signature="c2ln")
NOON = CapturedCall(id="call_n", name="clock", sent_id="g2", index=1)
BOTH = ToolContext(
    last_calls=(RAIN, NOON),
    pending_results=(
        CallResult(id="call_n", response={"output": "noon"}),
        CallResult(id="call_r", response={"output": "rain"}),
    ),
)
RAIN_CALL = {
    "functionCall": {"name": "weather", "args": {"city": "Oslo"}, "id": "g1"},
    "thoughtSignature": "c2ln",
}
NOON_CALL = {"functionCall": {"name": "clock", "args": {}, "id": "g2"}}
CALLS = {"role": "model", "parts": [RAIN_CALL, NOON_CALL]}
RAIN_RESPONSE = {"functionResponse": {"name": "weather", "response": {"output": "rain"}, "id": "g1"}}
NOON_RESPONSE = {"functionResponse": {"name": "clock", "response": {"output": "noon"}, "id": "g2"}}
RESPONSES = {"role": "user", "parts": [RAIN_RESPONSE, NOON_RESPONSE]}
WAITING = placeholder((RAIN, NOON))


def said(role: str, *texts: str) -> Json:
    return {"role": role, "parts": [{"text": text} for text in texts]}


def rewritten(*contents: Json, context: ToolContext = BOTH) -> list[Json]:
    request = {"contents": list(contents)}
    before = copy.deepcopy(request)
    made: list[Json] = modify_request(request, context)["contents"]
    assert request == before
    return made


def test_the_turn_that_stands_for_the_calls_becomes_them_and_results_go_in_front_of_the_users() -> None:
    made = rewritten(said("user", "rain?"), said("model", ""), said("user", "and now?"))
    assert made == [said("user", "rain?"), CALLS, RESPONSES, said("user", "and now?")]


def test_a_stand_in_shows_which_turn_it_was_and_what_else_was_said_stays() -> None:
    made = rewritten(
        said("user", "rain?"),
        said("model", f"Let me look.\n\n{WAITING}"),
        said("user", "thanks"),
        said("model", "anything else?"),
        said("user", "no"),
    )
    calling = {"role": "model", "parts": [{"text": "Let me look."}, RAIN_CALL, NOON_CALL]}
    assert made[1:3] == [calling, RESPONSES]
    assert made[3:] == [said("user", "thanks"), said("model", "anything else?"), said("user", "no")]


def test_a_stand_in_alone_is_gone_unless_it_is_signed() -> None:
    signed = {"role": "model", "parts": [{"text": WAITING, "thoughtSignature": "dGV4dA"}]}
    assert rewritten(said("user", "rain?"), said("model", WAITING))[1:] == [CALLS, RESPONSES]
    made = rewritten(said("user", "rain?"), signed)
    assert made[1]["parts"] == [{"text": "", "thoughtSignature": "dGV4dA"}, RAIN_CALL, NOON_CALL]


def test_a_turn_kept_chunk_by_chunk_becomes_one() -> None:
    chunks = [said("model", "Let me "), said("model", "look."), said("model", WAITING), said("model", "")]
    made = rewritten(said("user", "rain?"), *chunks, said("user", "go on"))
    texts = [{"text": "Let me "}, {"text": "look."}, {"text": ""}]
    assert made[1] == {"role": "model", "parts": [*texts, RAIN_CALL, NOON_CALL]}
    assert made[2:] == [RESPONSES, said("user", "go on")]


def test_without_a_turn_of_the_models_the_step_goes_on_behind_the_question() -> None:
    assert rewritten(said("user", "rain?")) == [said("user", "rain?"), CALLS, RESPONSES]


def test_the_same_question_again_goes_on_behind_it_whatever_was_said_before() -> None:
    talk = [said("user", "hi"), said("model", "hello"), said("user", "rain?")]
    question = question_of({"contents": talk})
    calls = (CapturedCall(id="call_r", name="weather", sent_id="g1", question=question),)
    context = ToolContext(last_calls=calls, pending_results=(CallResult(id="call_r", response={}),))
    made = rewritten(*talk, context=context)
    assert made[:3] == talk
    assert [part for content in made[3:] for part in content["parts"]] == [
        {"functionCall": {"name": "weather", "args": {}, "id": "g1"}},
        {"functionResponse": {"name": "weather", "response": {}, "id": "g1"}},
    ]


def test_calls_never_come_first_and_nothing_goes_on_behind_the_model() -> None:
    for talk in ([said("model", WAITING), said("user", "go on")], [said("model", "hi")]):
        request = {"contents": talk}
        assert modify_request(request, BOTH) is request


def test_a_result_that_never_came_is_told_as_an_error() -> None:
    context = ToolContext(last_calls=BOTH.last_calls, pending_results=BOTH.pending_results[1:])
    made = rewritten(said("user", "rain?"), said("model", WAITING), context=context)
    assert made[2]["parts"][0] == RAIN_RESPONSE
    assert made[2]["parts"][1]["functionResponse"]["response"] == {"error": "no result came for this call"}


MIXED = CapturedCall(id="call_r", name="weather", sent_id="g1", signature="c2ln", beside=("theirs",))
THEIRS: Json = {"functionCall": {"name": "read_file", "args": {}, "id": "theirs"}}
THEIR_RESPONSE = {"functionResponse": {"name": "read_file", "response": {"output": "x"}, "id": "theirs"}}
OUR_CALL = {"functionCall": {"name": "weather", "args": {}, "id": "g1"}, "thoughtSignature": "c2ln"}
OUR_RESPONSE = {"functionResponse": {"name": "weather", "response": {"output": "rain"}, "id": "g1"}}


@pytest.mark.parametrize("index", [0, 1, 5])
@pytest.mark.parametrize("before", [{}, {"thoughtSignature": SENTINEL}])
def test_a_mixed_step_is_completed_in_the_order_of_its_calls(index: int, before: Json) -> None:
    call = CapturedCall(
        id="call_r", name="weather", sent_id="g1", signature="c2ln" if not index else "", index=index
    )
    context = ToolContext(
        last_calls=(call,), pending_results=(CallResult(id="call_r", response={"output": "rain"}),)
    )
    made = rewritten(
        said("user", "both"),
        {"role": "model", "parts": [{"text": "Let me see."}, {**THEIRS, **before}]},
        {"role": "user", "parts": [THEIR_RESPONSE, {"text": "quick!"}]},
        context=context,
    )
    ours = OUR_CALL if not index else {"functionCall": OUR_CALL["functionCall"]}
    calls = [ours, THEIRS] if not index else [{**THEIRS, **before}, ours]
    answers = [OUR_RESPONSE, THEIR_RESPONSE] if not index else [THEIR_RESPONSE, OUR_RESPONSE]
    assert made[1] == {"role": "model", "parts": [{"text": "Let me see."}, *calls]}
    assert made[2] == {"role": "user", "parts": [*answers, {"text": "quick!"}]}


def test_googles_sentinel_moves_to_the_first_call_of_a_mixed_step() -> None:
    call = CapturedCall(id="call_r", name="weather")
    context = ToolContext(last_calls=(call,), pending_results=(CallResult(id="call_r", response={}),))
    theirs = {"role": "model", "parts": [{**THEIRS, "thoughtSignature": SENTINEL}]}
    made = rewritten(
        said("user", "both"), theirs, {"role": "user", "parts": [THEIR_RESPONSE]}, context=context
    )
    assert [part.get("thoughtSignature") for part in made[1]["parts"]] == [SENTINEL, None]


def test_a_client_that_saw_the_calls_gets_only_their_results() -> None:
    seen = {"role": "model", "parts": [RAIN_CALL, NOON_CALL]}
    assert rewritten(said("user", "rain?"), seen) == [said("user", "rain?"), seen, RESPONSES]
    half = rewritten(said("user", "rain?"), seen, {"role": "user", "parts": [{"text": "?"}, NOON_RESPONSE]})
    assert half[2]["parts"] == [RAIN_RESPONSE, NOON_RESPONSE, {"text": "?"}]
    own = rewritten(said("user", "rain?"), seen, RESPONSES)
    assert own == [said("user", "rain?"), seen, RESPONSES]


def test_calls_without_ids_are_known_by_what_they_say() -> None:
    answer = {
        "candidates": [
            {
                "content": {
                    "parts": [
                        {"functionCall": {"name": "weather", "args": {"a": 1, "b": 2}}},
                        {"functionCall": {"name": "read_file", "args": {"x": 1, "y": 2}}},
                    ]
                }
            }
        ]
    }
    (call,) = captured_calls(answer, {"weather"}, new_call_id=lambda: "call_r")
    shown = {"functionCall": {"name": "read_file", "args": {"y": 2, "x": 1}}}
    talk = [
        said("user", "both"),
        {"role": "model", "parts": [shown]},
        {"role": "user", "parts": [{"functionResponse": {"name": "read_file", "response": {}}}]},
        said("model", "well"),
        said("user", "go on"),
    ]
    assert continues_from({"contents": talk}, (call,))
    context = ToolContext(last_calls=(call,), pending_results=(CallResult(id="call_r", response={}),))
    made = rewritten(*talk, context=context)
    assert [part["functionCall"]["name"] for part in made[1]["parts"]] == ["weather", "read_file"]
    assert [part["functionResponse"]["name"] for part in made[2]["parts"]] == ["weather", "read_file"]


def test_earlier_steps_are_told_again_where_the_history_shows_them() -> None:
    first = CapturedCall(id="call_1", name="weather", sent_id="g0")
    context = ToolContext(
        earlier=(
            CallStep((first,), (CallResult(id="call_1", response={"output": "snow"}),)),
            CallStep((CapturedCall(id="call_0", name="gone", sent_id="gx"),)),
            CallStep(()),
        ),
        last_calls=BOTH.last_calls,
        pending_results=BOTH.pending_results,
    )
    made = rewritten(
        said("user", "snow?"),
        said("model", placeholder((first,))),
        said("user", "and rain?"),
        said("model", WAITING),
        said("user", "go on"),
        context=context,
    )
    assert [content["role"] for content in made] == ["user", "model", "user", "user", "model", "user", "user"]
    assert made[4:6] == [CALLS, RESPONSES]


def test_a_request_follows_up_on_calls_its_history_shows() -> None:
    question = {"contents": [said("user", "rain?")]}
    calls = (CapturedCall(id="call_r", name="weather", question=question_of(question)), NOON)
    shown = [said("user", "rain?"), said("model", f"So:{placeholder(calls)}"), said("user", "x")]
    assert continues_from(question, calls)
    assert continues_from({"contents": shown}, calls)
    assert not continues_from({"contents": [said("user", "a title, please")]}, calls)
    assert not continues_from({"contents": [said("user", placeholder(calls)), said("user", "x")]}, calls)
    assert not continues_from({}, calls)


def test_a_response_with_a_reference_is_text_unless_files_come_with_it() -> None:
    file = {"inlineData": {"mimeType": "image/png", "data": "aGk=", "displayName": "a"}}
    for response, files, wanted in (
        ({"list": [{"$ref": "a"}]}, (), {"output": '{"list":[{"$ref":"a"}]}'}),
        ({"image": {"$ref": "a"}}, (file,), {"image": {"$ref": "a"}}),
        ({"list": [1, {"b": "$ref"}]}, (), {"list": [1, {"b": "$ref"}]}),
    ):
        result = CallResult(id="call_r", response=response, parts=files)
        made = rewritten(
            said("user", "x"), context=ToolContext(last_calls=(RAIN,), pending_results=(result,))
        )
        told = made[2]["parts"][0]["functionResponse"]
        assert told["response"] == wanted
        assert told.get("parts", []) == list(files)
