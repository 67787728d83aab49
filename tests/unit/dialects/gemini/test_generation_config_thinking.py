"""The thinking table: all models of the documentation times all wishes, and models nobody knows yet."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from dragoman.dialects.gemini.generation_config import encode_thinking
from dragoman.dialects.gemini.models import Level, profile_of
from dragoman.ir import Effort, Sampling, Thinking

ALL = ("MINIMAL", "LOW", "MEDIUM", "HIGH")
NO_MINIMAL = ALL[1:]

#: Models with levels: https://ai.google.dev/gemini-api/docs/thinking
LEVELS = {
    "gemini-3-flash-preview": ALL,
    "gemini-3.1-pro-preview": NO_MINIMAL,
    "gemini-3.1-pro-preview-customtools": NO_MINIMAL,
    "gemini-3.1-flash-lite": ALL,
    "gemini-3.5-flash-lite": ALL,
    "gemini-flash-lite-latest": ALL,
    "gemini-3.5-flash": ALL,
    "gemini-3.6-flash": ALL,
    "gemini-3.7-flash": NO_MINIMAL,
    "gemini-3.8-flash": NO_MINIMAL,
    "gemini-4-argon": NO_MINIMAL,
    "gemini-4-carbon": NO_MINIMAL,
    "gemma-4-31b-it": ALL,
    "gemma-4-26b-a4b-it": ALL,
    # not in the documentation: the newest behaviour, the smallest set of levels
    "gemini-flash-latest": NO_MINIMAL,
    "gemini-pro-latest": NO_MINIMAL,
    "gemini-3.9-flash": NO_MINIMAL,
    "gemini-3.10-pro": NO_MINIMAL,
    "gemini-4.5-xenon": NO_MINIMAL,
    "gemini-5-neon": NO_MINIMAL,
    "whatever": NO_MINIMAL,
}
#: smallest, largest, may be 0
BUDGETS = {
    "gemini-2.5-pro": (128, 32_768, False),
    "gemini-2.5-flash": (1, 24_576, True),
    "gemini-2.5-flash-preview-09-2025": (1, 24_576, True),
    "gemini-2.5-flash-lite": (512, 24_576, True),
}
QUIET = {
    "gemini-3.1-flash-lite",
    "gemini-3.5-flash-lite",
    "gemini-flash-lite-latest",
    "gemini-2.5-flash-lite",
}
MODELS = [*LEVELS, *BUDGETS]

WISHES = [
    Thinking(),
    Thinking(mode="off"),
    Thinking(mode="off", effort="high"),
    Thinking(mode="on"),
    Thinking(mode="on", show=True),
    *(Thinking(mode=mode, effort=effort) for effort in get_args(Effort) for mode in ("default", "on")),
    *(
        Thinking(mode="on", budget_tokens=size, show=True)
        for size in (0, 1, 500, 1_024, 1_025, 4_096, 16_384, 31_999, 10**6)
    ),
    Thinking(mode="on", budget_tokens=2_000, effort="high"),
]
ANSWERS = [None, 1, 100, 4_095, 4_096, 64_000]


def thinking(model: str, wish: Thinking, max_tokens: int | None = None) -> dict[str, Any]:
    return encode_thinking(wish, Sampling(max_tokens=max_tokens), profile_of(model))[0]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("wish", WISHES, ids=repr)
def test_i1_i2_every_wish_is_legal_for_every_model(model: str, wish: Thinking) -> None:
    for max_tokens in ANSWERS:
        config, notes = encode_thinking(wish, Sampling(max_tokens=max_tokens), profile_of(model))
        assert not {"thinkingBudget", "thinkingLevel"} <= config.keys()
        assert config.keys() <= {"thinkingBudget", "thinkingLevel", "includeThoughts"}
        if model in LEVELS:
            assert config.get("thinkingLevel", "LOW") in LEVELS[model]
            assert "thinkingBudget" not in config
        else:
            low, high, zero = BUDGETS[model]
            assert "thinkingLevel" not in config
            budget = config.get("thinkingBudget", -1)
            assert budget == -1 or (budget == 0 and zero) or low <= budget <= high
        assert config.get("includeThoughts", False) is (wish.show and wish.mode == "on")
        assert all(note.kind == "clamped" for note in notes)


@pytest.mark.parametrize("model", MODELS)
def test_d6_off_and_short_answers_think_as_little_as_the_model_can(model: str) -> None:
    least: dict[str, Any]
    if model in LEVELS:
        least = {"thinkingLevel": LEVELS[model][0]}
    else:
        least = {"thinkingBudget": 0 if BUDGETS[model][2] else BUDGETS[model][0]}
    assert thinking(model, Thinking(mode="off")) == least
    assert thinking(model, Thinking(), 4_095) == least
    assert thinking(model, Thinking(), 1) == least


@pytest.mark.parametrize("model", MODELS)
def test_without_a_wish_the_model_decides(model: str) -> None:
    assert thinking(model, Thinking()) == {}
    assert thinking(model, Thinking(), 4_096) == {}


@pytest.mark.parametrize("model", MODELS)
def test_f2_adaptive_wakes_only_who_sleeps(model: str) -> None:
    expected: dict[str, Any] = {}
    if model in QUIET:
        expected = {"thinkingLevel": "MEDIUM"} if model in LEVELS else {"thinkingBudget": -1}
    assert thinking(model, Thinking(mode="on")) == expected
    assert thinking(model, Thinking(mode="on", show=True)) == {**expected, "includeThoughts": True}


@pytest.mark.parametrize("model", LEVELS)
@pytest.mark.parametrize(
    ("effort", "level"),
    [("minimal", "MINIMAL"), ("low", "LOW"), ("medium", "MEDIUM"), ("high", "HIGH"), ("max", "HIGH")],
)
def test_i1_effort_is_a_level_from_3_on(model: str, effort: Effort, level: str) -> None:
    config, notes = encode_thinking(Thinking(effort=effort), Sampling(), profile_of(model))
    assert config == {"thinkingLevel": level if level in LEVELS[model] else "LOW"}
    assert bool(notes) is (level not in LEVELS[model])


@pytest.mark.parametrize(
    ("budget", "level"),
    [
        (1, "MINIMAL"),
        (1_024, "MINIMAL"),
        (1_025, "LOW"),
        (4_096, "LOW"),
        (4_097, "MEDIUM"),
        (16_384, "MEDIUM"),
        (16_385, "HIGH"),
    ],
)
def test_i1_a_budget_becomes_the_level_it_means(budget: int, level: str) -> None:
    wish = Thinking(mode="on", budget_tokens=budget)
    assert thinking("gemini-3.6-flash", wish) == {"thinkingLevel": level}
    assert thinking("gemini-3.8-flash", wish) == {"thinkingLevel": level if level != "MINIMAL" else "LOW"}


@pytest.mark.parametrize(
    ("model", "wish", "max_tokens", "budget", "clamped"),
    [
        ("gemini-2.5-flash", Thinking(mode="on", budget_tokens=2_000), None, 2_000, False),
        ("gemini-2.5-flash", Thinking(mode="on", budget_tokens=64_000), None, 24_576, True),
        ("gemini-2.5-pro", Thinking(mode="on", budget_tokens=64_000), None, 32_768, True),
        ("gemini-2.5-pro", Thinking(mode="on", budget_tokens=1), None, 128, True),
        ("gemini-2.5-flash-lite", Thinking(mode="on", budget_tokens=1), None, 512, True),
        ("gemini-2.5-flash", Thinking(mode="on", budget_tokens=0), None, 1, True),
        ("gemini-2.5-flash", Thinking(mode="on", budget_tokens=2_000), 1_500, 1_499, True),
        ("gemini-2.5-flash", Thinking(mode="on", budget_tokens=2_000), 2_001, 2_000, False),
        ("gemini-2.5-pro", Thinking(mode="on", budget_tokens=2_000), 100, 128, True),
        ("gemini-2.5-flash", Thinking(effort="low"), None, 2_048, False),
        ("gemini-2.5-flash", Thinking(effort="medium"), None, 8_192, False),
        ("gemini-2.5-flash", Thinking(effort="high"), None, 24_576, False),
        ("gemini-2.5-flash", Thinking(effort="max"), None, 24_576, True),
        ("gemini-2.5-pro", Thinking(effort="max"), None, 32_768, False),
        ("gemini-2.5-flash-lite", Thinking(effort="minimal"), None, 512, False),
        ("gemini-2.5-flash", Thinking(mode="on", budget_tokens=9, effort="low"), None, 2_048, False),
    ],
)
def test_i2_i3_budgets_fit_the_model_and_the_answer(
    model: str, wish: Thinking, max_tokens: int | None, budget: int, clamped: bool
) -> None:
    config, notes = encode_thinking(wish, Sampling(max_tokens=max_tokens), profile_of(model))
    assert config == {"thinkingBudget": budget}
    assert [note.kind for note in notes] == (["clamped"] if clamped else [])


@pytest.mark.parametrize(
    ("model", "wish", "max_tokens", "expected"),
    [
        ("gemini-3.8-flash", Thinking(effort="high"), 1, {"thinkingLevel": "LOW"}),
        (
            "gemini-3.6-flash",
            Thinking(mode="on", effort="max", show=True),
            512,
            {"thinkingLevel": "MINIMAL", "includeThoughts": True},
        ),
        ("gemini-3.5-flash-lite", Thinking(mode="on"), 512, {"thinkingLevel": "MINIMAL"}),
        ("gemini-3.6-flash", Thinking(effort="high"), 4_096, {"thinkingLevel": "HIGH"}),
        ("gemini-2.5-flash", Thinking(effort="high"), 4_096, {"thinkingBudget": 2_048}),
        ("gemini-2.5-flash", Thinking(mode="on", budget_tokens=1_024), 2_000, {"thinkingBudget": 1_024}),
    ],
)
def test_d6_thinking_leaves_room_for_the_answer(
    model: str, wish: Thinking, max_tokens: int, expected: dict[str, Any]
) -> None:
    assert thinking(model, wish, max_tokens) == expected


def test_levels_of_the_table_are_the_words_of_the_type() -> None:
    for model in LEVELS:
        assert set(profile_of(model).levels) <= set(get_args(Level))
