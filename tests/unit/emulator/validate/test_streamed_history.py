"""A streamed answer that comes back in pieces: every chunk a content of its own, as Google's SDK keeps it."""

from __future__ import annotations

import pytest

from tests.unit.emulator.builders import (
    SENTINEL,
    VERTEX,
    Json,
    ask,
    function_responses,
    message,
    model_calls,
    model_text,
    talk,
    user,
)

THOUGHT: Json = {"role": "model", "parts": [{"text": "hm", "thought": True}]}
CALL_TURN = "Please ensure that function call turn comes immediately after"


def piece(signature: str = "", **call: object) -> Json:
    part: Json = {"functionCall": call}
    if signature:
        part["thoughtSignature"] = signature
    return {"role": "model", "parts": [part]}


BEGIN = piece(SENTINEL, name="f", id="1", willContinue=True)
MIDDLE = piece(partialArgs=[{"jsonPath": "$.a", "stringValue": "x"}], willContinue=True)
END = piece()


@pytest.mark.parametrize("model", ["gemini-2.5-flash", "gemini-3.5-flash", "gemini-3.8-flash"])
def test_thoughts_in_a_content_of_their_own_are_no_turn(model: str) -> None:
    ask(talk(user("a"), THOUGHT, model_calls("f"), function_responses("f")), model=model)
    ask(
        talk(
            user("a"),
            model_calls("f"),
            model_text(""),
            function_responses("f"),
            THOUGHT,
            model_calls("g"),
            function_responses("g"),
        ),
        model=model,
    )


def test_words_in_front_of_a_call_are_a_turn() -> None:
    assert message(talk(user("a"), model_text("b"), model_calls("f"), function_responses("f"))).startswith(
        CALL_TURN
    )


def test_vertex_takes_streamed_arguments_back_as_they_came() -> None:
    whole = {
        "role": "model",
        "parts": [part for content in (BEGIN, MIDDLE, END) for part in content["parts"]],
    }
    for steps in ((BEGIN, MIDDLE, END), (BEGIN, MIDDLE, MIDDLE, END, model_text("")), (whole,)):
        ask(talk(user("a"), *steps, function_responses("f")), path=VERTEX)


def test_only_the_beginning_of_streamed_arguments_needs_a_signature() -> None:
    unsigned = piece(name="f", id="1", willContinue=True)
    words = message(talk(user("a"), unsigned, MIDDLE, END, function_responses("f")), path=VERTEX)
    assert "missing a thought_signature" in words
    assert "`default_api:f` , position 2" in words


def test_a_call_without_a_name_is_refused_unless_it_is_a_piece() -> None:
    nameless = talk(user("a"), piece(SENTINEL, args={}), function_responses("f"))
    for path in ("/v1beta/models/{}:{}", VERTEX):
        assert "function_call.name: Name cannot be empty." in message(nameless, path=path)
    assert "function_call.name: Name cannot be empty." in message(
        talk(user("a"), END, function_responses("f"))
    )
