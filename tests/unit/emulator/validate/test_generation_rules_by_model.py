"""What tells the models apart, as documented."""

from __future__ import annotations

import pytest

from dragoman.emulator.models import ALIASES, MODELS, find_model
from tests.unit.emulator.builders import (
    MODEL,
    VERTEX,
    Json,
    ask,
    declare,
    function_responses,
    hello,
    message,
    model_calls,
    model_text,
    send,
    talk,
    user,
)

ALL = ("MINIMAL", "LOW", "MEDIUM", "HIGH")
NO_MINIMAL = ALL[1:]
LEVELS = {
    "gemini-3-flash-preview": ALL,
    "gemini-3.1-pro-preview": NO_MINIMAL,
    "gemini-3.1-flash-lite": ALL,
    "gemini-3.5-flash-lite": ALL,
    "gemini-3.5-flash": ALL,
    "gemini-3.6-flash": ALL,
    "gemini-3.7-flash": NO_MINIMAL,
    "gemini-3.8-flash": NO_MINIMAL,
    "gemini-4-argon": NO_MINIMAL,
    "gemini-4-carbon": NO_MINIMAL,
}
#: model: (accepted budgets, refused budgets)
BUDGETS = {
    "gemini-2.5-pro": ((-1, 128, 32768), (0, 127, 32769)),
    "gemini-2.5-flash": ((-1, 0, 1, 24576), (-2, 24577)),
    "gemini-2.5-flash-lite": ((-1, 0, 512, 24576), (1, 511, 24577)),
    "gemini-3.5-flash": ((-1, 0, 65535), (-2, 65536)),
    "gemini-3.7-flash": ((-1, 0, 65535), ()),
    "gemini-3.8-flash": ((-1, 1, 65535), (0, 65536)),
}
STRICT = (
    "gemini-3.5-flash-lite",
    "gemini-3.6-flash",
    "gemini-3.7-flash",
    "gemini-3.8-flash",
    "gemini-4-argon",
    "gemini-4-carbon",
    *ALIASES,
)


def thinking(**settings: object) -> Json:
    return hello(generationConfig={"thinkingConfig": settings})


@pytest.mark.parametrize(("model", "levels"), LEVELS.items())
def test_each_model_has_its_own_levels(model: str, levels: tuple[str, ...]) -> None:
    for level in ALL:
        if level in levels:
            ask(thinking(thinkingLevel=level), model=model)
        else:
            words = f"Thinking level {level} is not supported for this model."
            assert message(thinking(thinkingLevel=level), model=model) == words
            vertex = f"Thinking level is unsupported: THINKING_LEVEL_{level}"
            assert message(thinking(thinkingLevel=level), model=model, path=VERTEX) == vertex


@pytest.mark.parametrize(("model", "budgets"), BUDGETS.items())
def test_each_model_has_its_own_budgets(model: str, budgets: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    accepted, refused = budgets
    for budget in accepted:
        ask(thinking(thinkingBudget=budget), model=model)
    for budget in refused:
        assert "udget" in message(thinking(thinkingBudget=budget), model=model)


def test_the_tables_of_this_file_cover_every_gemini() -> None:
    named = {*LEVELS, *BUDGETS}
    assert {model.id for model in MODELS if model.id.startswith("gemini-")} <= named


@pytest.mark.parametrize("model", [model.id for model in MODELS] + list(ALIASES))
def test_strict_turns_belong_to_the_newer_models_and_all_aliases(model: str) -> None:
    answer = send(talk(user("a"), model_text("b")), model=model)
    assert answer.status == (400 if model in STRICT else 200)
    old_role = talk(user("a"), {"role": "system", "parts": [{"text": "b"}]})
    assert send(old_role, model=model).status == answer.status


@pytest.mark.parametrize("model", ["gemini-2.5-computer-use-preview-10-2025", "gemini-2.5-flash-preview-tts"])
def test_every_variant_of_2_5_is_a_2_5(model: str) -> None:
    ask(talk(user("a"), model_calls("f", signature=None), function_responses("f")), model=model)
    assert message(thinking(thinkingLevel="LOW"), model=model).startswith("Thinking level is not")


@pytest.mark.parametrize("model", ["gemini-3-pro-image-preview", "gemini-3.1-flash-image"])
def test_image_models_do_not_enforce_signatures(model: str) -> None:
    ask(talk(user("a"), model_calls("f", signature=None), function_responses("f")), model=model)
    ask(talk(user("a"), model_calls("f", signature="abcd"), function_responses("f")), model=model)


def test_the_computer_stands_beside_functions() -> None:
    tools = [{"computerUse": {"environment": "ENVIRONMENT_BROWSER"}}, *declare("f")]
    for model in ("gemini-2.5-computer-use-preview-10-2025", "gemini-3.8-flash"):
        ask(hello(tools=tools), model=model)


def test_the_computer_use_model_takes_screenshots_inside_responses() -> None:
    content = function_responses("f")
    shot = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    content["parts"][0]["functionResponse"]["parts"] = [shot]
    body = talk(user("a"), model_calls("f", signature=None), content)
    ask(body, model="gemini-2.5-computer-use-preview-10-2025")
    assert message(body, model="gemini-2.5-flash") == "Request contains an invalid argument."


def test_penalties_and_candidates_by_model_and_back_end() -> None:
    penalty = hello(generationConfig={"presencePenalty": 0.5})
    ask(penalty, model="gemini-2.5-flash", path=VERTEX)
    assert message(penalty, path=VERTEX) == "Penalty is not enabled for this model"
    two = hello(generationConfig={"candidateCount": 2})
    ask(two, model="gemini-2.5-flash")
    assert message(two) == "Multiple candidates is not enabled for this model"
    none = hello(generationConfig={"candidateCount": 0})
    ask(none, path=VERTEX)
    assert "candidate_count" in message(none)


def test_sampling_is_taken_by_every_model() -> None:
    body = hello(generationConfig={"temperature": 0.3, "topP": 0.5, "topK": 3, "seed": 1})
    for model in MODELS:
        ask(body, model=model.id)


def test_too_many_output_tokens_are_clamped_on_ai_studio() -> None:
    ask(hello(generationConfig={"maxOutputTokens": 1_000_000}))


@pytest.mark.parametrize("model", [model.id for model in MODELS if model.family == "gemini-3"])
def test_bad_signatures_are_refused_by_every_gemini_3(model: str) -> None:
    body = talk(user("a"), model_calls("f", signature="abcd"), function_responses("f"))
    assert message(body, model=model) == "Corrupted thought signature."


def test_gemma_demands_signatures() -> None:
    body = talk(user("a"), model_calls("f", signature=None), function_responses("f"))
    assert "missing a thought_signature" in message(body, model="gemma-4-31b-it")


@pytest.mark.parametrize(("model", "most"), [("gemini-4-argon", 1_048_576), (MODEL, 65_536)])
def test_the_output_cap_of_gemini_4_on_vertex_is_that_of_all_hops(model: str, most: int) -> None:
    ask(hello(generationConfig={"maxOutputTokens": most}), model=model, path=VERTEX)
    model_text = message(hello(generationConfig={"maxOutputTokens": most + 1}), model=model, path=VERTEX)
    assert f"from 1 (inclusive) to {most + 1} (exclusive)" in model_text


def test_asking_for_ever_new_models_does_not_fill_the_memory() -> None:
    assert find_model.cache_info().maxsize is not None
