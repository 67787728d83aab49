"""Stage 3, second half: turn order, responses, roles and signatures."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from dragoman.emulator.service import EmulatorService
from tests.unit.emulator.builders import (
    MODEL,
    OLD_MODEL,
    VERTEX,
    Json,
    ask,
    declare,
    error,
    function_responses,
    message,
    model_calls,
    model_text,
    parts,
    talk,
    user,
)

LENIENT = "gemini-3.5-flash"
CALL_TURN = (
    "Please ensure that function call turn comes immediately after a user turn or after a "
    "function response turn."
)
RESPONSE_TURN = "Please ensure that function response turn comes immediately after a function call turn."
COUNTS = (
    "Please ensure that the number of function response parts is equal to the number of function "
    "call parts of the "
    "function call turn."
)
TRAILING = "Requests ending with a model turn are not supported."
PNG = "iVBORw0KGgo="
CATCH_ALL = "Request contains an invalid argument."

REFUSED = {
    "call first": ([model_calls("f"), function_responses("f")], CALL_TURN),
    "call after model text": (
        [user("a"), model_text("b"), model_calls("f"), function_responses("f")],
        CALL_TURN,
    ),
    "response without call": ([user("a"), model_text("b"), function_responses("f")], RESPONSE_TURN),
    "response first": ([function_responses("f")], RESPONSE_TURN),
    "text instead of the response": ([user("a"), model_calls("f"), user("b")], COUNTS),
    "one response too few": ([user("a"), model_calls("f", "g"), function_responses("f")], COUNTS),
    "responses in two contents": (
        [user("a"), model_calls("f", "g"), function_responses("f"), function_responses("g")],
        COUNTS,
    ),
    "one response too many": ([user("a"), model_calls("f"), function_responses("f", "g")], COUNTS),
    "dangling call at the end": ([user("a"), model_calls("f")], COUNTS),
    # go-genai#692: the SDK's streamed chat splits them so, and the live service refuses.
    "parallel calls in two contents": (
        [user("a"), model_calls("f"), model_calls("g"), function_responses("f", "g")],
        COUNTS,
    ),
    "wrong name": ([user("a"), model_calls("f"), function_responses("g")], CATCH_ALL),
    "wrong order without ids": ([user("a"), model_calls("f", "g"), function_responses("g", "f")], CATCH_ALL),
    "unknown id": (
        [user("a"), model_calls("f", ids=True), function_responses("f", ids=("other",))],
        CATCH_ALL,
    ),
    "one id twice": (
        [user("a"), model_calls("f", "f", ids=True), function_responses("f", "f", ids=("id-0", "id-0"))],
        CATCH_ALL,
    ),
    "id of another function": (
        [user("a"), model_calls("f", "g", ids=True), function_responses("f", "g", ids=("id-1", "id-0"))],
        CATCH_ALL,
    ),
    "reference in a response": (
        [user("a"), model_calls("f"), function_responses("f", output={"deep": [{"$ref": "#/x"}]})],
        CATCH_ALL,
    ),
    "unknown role": (
        [{"role": "assistant", "parts": [{"text": "x"}]}],
        "Please use a valid role: user, model.",
    ),
}


@pytest.mark.parametrize(("contents", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(contents: list[Json], words: str) -> None:
    assert message(talk(*contents), model=LENIENT) == words


ACCEPTED = {
    "same role twice": [user("a"), user("b"), model_text("c"), model_text("d"), user("e")],
    "model text first": [model_text("a"), user("b")],
    "any order with ids": [
        user("a"),
        model_calls("f", "g", ids=True),
        function_responses("g", "f", ids=("id-1", "id-0")),
    ],
    "missing response ids": [user("a"), model_calls("f", "g", ids=True), function_responses("f", "g")],
    "text beside a response": [
        user("a"),
        model_calls("f"),
        {"role": "user", "parts": [*function_responses("f")["parts"], {"text": "and now?"}]},
    ],
    "closing chunk of a streamed answer": [
        user("a"),
        model_calls("f"),
        model_text(""),
        function_responses("f"),
    ],
    "two steps": [
        user("a"),
        model_calls("f"),
        function_responses("f"),
        model_calls("f"),
        function_responses("f"),
    ],
    "no role means user": [{"parts": [{"text": "a"}]}],
}


@pytest.mark.parametrize("contents", ACCEPTED.values(), ids=ACCEPTED.keys())
@pytest.mark.parametrize("model", [MODEL, LENIENT, OLD_MODEL])
def test_accepted_by_every_model(contents: list[Json], model: str) -> None:
    ask(talk(*contents), model=model)


def test_newer_models_name_the_stray_response() -> None:
    assert (
        message(talk(user("a"), function_responses("f")))
        == f"{RESPONSE_TURN} Got function response with name 'f'."
    )


@pytest.mark.parametrize("role", ["function", "tool", "system"])
def test_old_roles_are_taken_by_old_models_only(role: str) -> None:
    contents = [user("a"), model_calls("f"), {**function_responses("f"), "role": role}]
    ask(talk(*contents), model=LENIENT)
    for model in (MODEL, "gemini-3.5-flash-lite", "gemini-4-argon"):
        words = f"Role '{role}' is not supported. Please use a valid role: MODEL, USER."
        assert message(talk(*contents), model=model) == words


def test_vertex_demands_a_role() -> None:
    assert message(talk({"parts": [{"text": "a"}]}), path=VERTEX) == "Please use a valid role: user, model."


@pytest.mark.parametrize("model", [MODEL, "gemini-3.6-flash", "gemini-3.5-flash-lite", "gemini-flash-latest"])
def test_strict_models_do_not_continue_a_model_turn(model: str) -> None:
    assert message(talk(user("a"), model_text("b")), model=model) == TRAILING
    assert message(talk(user("a"), model_text("b"), user("")), model=model) == TRAILING
    ask(talk(user("a"), model_text("b"), user(" ")), model=model)
    ask(talk(user("a"), model_text("b")), model=LENIENT)


def with_media(**blob: str) -> Json:
    content = function_responses("f", output={"$ref": "shot.png"})
    content["parts"][0]["functionResponse"]["parts"] = [{"inlineData": blob}]
    return talk(user("a"), model_calls("f"), content)


def test_a_response_may_reference_the_media_it_carries() -> None:
    good = with_media(mimeType="image/png", data=PNG, displayName="shot.png")
    ask(good)
    assert message(good, model=OLD_MODEL) == CATCH_ALL
    assert message(with_media(mimeType="image/png", data=PNG)) == CATCH_ALL
    assert message(with_media(mimeType="audio/wav", data="aaaa", displayName="shot.png")).startswith(
        "Unsupported MIME"
    )


# Signatures


def issue(model: str = MODEL, service: EmulatorService | None = None, **options: Any) -> Json:
    """A model turn that the emulator itself produced, with a signed call of `f`."""
    asked = talk(user("use f with {}"), tools=declare("f", "g"))
    if service is not None:
        options["service"] = service
    content: Json = ask(asked, model=model, **options)["candidates"][0]["content"]
    return content


def resend(content: Json) -> Json:
    names = [part["functionCall"]["name"] for part in content["parts"] if "functionCall" in part]
    return talk(user("use f with {}"), content, function_responses(*names), tools=declare("f", "g"))


def test_an_issued_signature_is_taken_back_by_another_process() -> None:
    content = issue()
    assert 100 <= len(content["parts"][0]["thoughtSignature"]) <= 300
    ask(resend(content), service=EmulatorService("test"))


def test_arguments_may_be_rewritten_by_the_client() -> None:
    content = issue()
    content["parts"][0]["functionCall"]["args"] = {"replace_all": False}
    ask(resend(content))


def test_url_safe_spelling_is_the_same_signature() -> None:
    content = issue()
    raw = base64.b64decode(content["parts"][0]["thoughtSignature"])
    content["parts"][0]["thoughtSignature"] = base64.urlsafe_b64encode(raw).decode().rstrip("=")
    ask(resend(content))


@pytest.mark.parametrize("model", [MODEL, LENIENT, "gemini-3.5-flash-lite", "gemini-unheard-of"])
def test_a_missing_signature_is_named_with_its_position(model: str) -> None:
    contents = [
        user("old"),
        model_calls("f"),
        function_responses("f"),
        model_text("x"),
        user("a"),
        model_calls("f", signature=None),
        function_responses("f"),
    ]
    assert message(talk(*contents), model=model) == (
        "Function call is missing a thought_signature in functionCall parts. This is required for "
        "tools to work "
        "correctly, and missing thought_signature may lead to degraded model performance. "
        "Additional data, function "
        "call `default_api:f` , position 6. Please refer to "
        "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
    )


def test_every_step_of_the_turn_needs_its_own() -> None:
    steps = [
        model_calls("f"),
        function_responses("f"),
        model_calls("g", signature=None),
        function_responses("g"),
    ]
    assert "`default_api:g` , position 4" in message(talk(user("a"), *steps))


def test_earlier_turns_and_later_parallel_calls_may_be_unsigned() -> None:
    earlier = [user("a"), model_calls("f", signature=None), function_responses("f"), model_text("b")]
    ask(talk(*earlier, user("c"), model_calls("f", "g"), function_responses("f", "g")))


def test_the_first_call_must_be_the_signed_one() -> None:
    step = model_calls("f", "g", signature=None)
    step["parts"][1]["thoughtSignature"] = "skip_thought_signature_validator"
    assert "missing a thought_signature" in message(talk(user("a"), step, function_responses("f", "g")))


def test_a_missing_signature_is_reported_before_the_trailing_turn() -> None:
    assert "missing a thought_signature" in message(talk(user("a"), model_calls("f", signature=None)))
    assert message(talk(user("a"), model_calls("f"))) == TRAILING


def test_old_models_neither_need_nor_check_signatures() -> None:
    ask(talk(user("a"), model_calls("f", signature=None), function_responses("f")), model=OLD_MODEL)
    ask(talk(user("a"), model_calls("f", signature="abcd"), function_responses("f")), model=OLD_MODEL)


SENTINELS = ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"]


@pytest.mark.parametrize("word", SENTINELS)
def test_sentinels_pass_raw_and_encoded(word: str) -> None:
    for spelling in (word, base64.b64encode(word.encode()).decode()):
        ask(talk(user("a"), model_calls("f", signature=spelling), function_responses("f")))


def test_vertex_knows_one_sentinel_only() -> None:
    first, second = (
        talk(user("a"), model_calls("f", signature=word), function_responses("f")) for word in SENTINELS
    )
    ask(first, path=VERTEX)
    assert message(second, path=VERTEX) == "Corrupted thought signature."


def damage(signature: str) -> str:
    raw = bytearray(base64.b64decode(signature))
    raw[40] ^= 1
    return base64.b64encode(raw).decode()


def test_damaged_and_foreign_signatures_are_corrupted() -> None:
    content = issue()
    genuine = content["parts"][0]["thoughtSignature"]
    other_seed = issue(service=EmulatorService("other"))["parts"][0]["thoughtSignature"]
    for bad in (damage(genuine), genuine[:-8], other_seed, "ErUBCkYIBxgC", "YQ=="):
        content["parts"][0]["thoughtSignature"] = bad
        assert message(resend(content)) == "Corrupted thought signature."


def test_a_signature_of_another_backend_family_or_function_is_invalid() -> None:
    invalid = "Invalid thought signature."
    assert message(resend(issue(path=VERTEX))) == invalid
    assert message(resend(issue()), path=VERTEX) == invalid
    assert message(resend(issue(model="gemini-4-argon"))) == invalid
    moved = issue()
    moved["parts"][0]["functionCall"]["name"] = "g"
    assert message(resend(moved)) == invalid


def test_models_of_one_family_share_signatures() -> None:
    ask(resend(issue(model="gemini-3.5-flash")))


def test_the_signature_of_a_text_answer_stays_on_text() -> None:
    spoken = parts(ask(talk(user("hello"))))
    assert spoken[0]["thoughtSignature"]
    ask(talk(user("hello"), {"role": "model", "parts": spoken}, user("more")))
    step = model_calls("f", signature=spoken[0]["thoughtSignature"])
    assert message(talk(user("a"), step, function_responses("f"))) == "Invalid thought signature."


def test_a_bad_signature_is_refused_in_older_turns_too() -> None:
    contents = [
        user("a"),
        model_calls("f", signature="abcd"),
        function_responses("f"),
        model_text("b"),
        user("c"),
    ]
    assert error(talk(*contents))["message"] == "Corrupted thought signature."
