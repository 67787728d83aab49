"""Encode the thinking effort as `thinkingConfig`: a level since Gemini 3, a token budget before."""

from __future__ import annotations

from typing import Any

from dragoman.dialects.gemini.models import Level, ModelProfile
from dragoman.ir import Effort, Sampling, Thinking
from dragoman.notes import Note

_LEVEL: dict[Effort, Level] = {
    "minimal": "minimal",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "max": "high",
}
_BUDGET: dict[Effort, int] = {"minimal": 512, "low": 2_048, "medium": 8_192, "high": 24_576, "max": 32_768}

#: The largest token budget that maps to each level; a larger one maps to high.
_LEVEL_UP_TO: tuple[tuple[int, Level], ...] = ((1_024, "minimal"), (4_096, "low"), (16_384, "medium"))

#: Below this output limit think as little as possible, unless a budget is set: thoughts count against it (pain D6).
SHORT_ANSWER_TOKENS = 4_096


def encode_thinking(
    thinking: Thinking, sampling: Sampling, profile: ModelProfile
) -> tuple[dict[str, Any], tuple[Note, ...]]:
    """Return the `thinkingConfig` of a request and notes; an empty one means the model's default."""
    if thinking.mode == "own":
        return {}, ()
    if thinking.mode == "off":
        return _least(profile), ()
    if thinking.budget_tokens is None and _short(sampling):
        config, notes = _least(profile), _less(thinking)
    else:
        config, notes = _amount(thinking, sampling, profile)
    if thinking.show:
        config["includeThoughts"] = True
    return config, notes


def _less(thinking: Thinking) -> tuple[Note, ...]:
    if thinking.effort is None:
        return ()
    return (Note("clamped", "output_config.effort", "so short an answer leaves no room for more thinking"),)


def _short(sampling: Sampling) -> bool:
    return sampling.max_tokens is not None and sampling.max_tokens < SHORT_ANSWER_TOKENS


def _least(profile: ModelProfile) -> dict[str, Any]:
    if profile.levels:
        return {"thinkingLevel": profile.levels[0].upper()}
    return {"thinkingBudget": 0 if profile.can_stop_thinking else profile.budget[0]}


def _amount(
    thinking: Thinking, sampling: Sampling, profile: ModelProfile
) -> tuple[dict[str, Any], tuple[Note, ...]]:
    if thinking.budget_tokens is None and thinking.effort is None:
        return _enable(thinking, profile), ()
    if profile.levels:
        return _level(thinking, profile)
    return _budget(thinking, sampling, profile)


def _enable(thinking: Thinking, profile: ModelProfile) -> dict[str, Any]:
    """Turn thinking on for a model that does not think by default, if the client asks for thinking."""
    if thinking.mode == "default" or profile.thinks_by_default:
        return {}
    return {"thinkingLevel": "MEDIUM"} if profile.levels else {"thinkingBudget": -1}


def _level(thinking: Thinking, profile: ModelProfile) -> tuple[dict[str, Any], tuple[Note, ...]]:
    if thinking.effort is not None:
        wanted = _LEVEL[thinking.effort]
    else:
        budget = thinking.budget_tokens or 0
        wanted = next((level for limit, level in _LEVEL_UP_TO if budget <= limit), "high")
    if wanted in profile.levels:
        return {"thinkingLevel": wanted.upper()}, ()
    nearest = profile.levels[0]
    note = Note("clamped", "thinking", f"this model has no thinking level {wanted}; {nearest} is used")
    return {"thinkingLevel": nearest.upper()}, (note,)


def _budget(
    thinking: Thinking, sampling: Sampling, profile: ModelProfile
) -> tuple[dict[str, Any], tuple[Note, ...]]:
    wanted = thinking.budget_tokens if thinking.effort is None else _BUDGET[thinking.effort]
    lowest, highest = profile.budget
    if sampling.max_tokens is not None:
        room = sampling.max_tokens - 1 if thinking.effort is None else sampling.max_tokens // 2
        highest = max(lowest, min(highest, room))
    budget = min(max(wanted or 0, lowest), highest)
    if budget == wanted:
        return {"thinkingBudget": budget}, ()
    note = Note(
        "clamped", "thinking.budget_tokens", f"{wanted} is outside {lowest}..{highest}; {budget} is used"
    )
    return {"thinkingBudget": budget}, (note,)
