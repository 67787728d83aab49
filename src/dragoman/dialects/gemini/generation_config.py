"""Encode sampling, thinking and the output format as `generationConfig`.

The thinking effort becomes `thinkingConfig`: a level since Gemini 3, a token budget before.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.dialects.base import Target
from dragoman.dialects.gemini.models import Level, ModelProfile, profile_of
from dragoman.ir import Effort, Request, Sampling, Thinking
from dragoman.notes import Note
from dragoman.schema import clean_schema

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

#: Below this output limit think as little as possible, unless a budget is set: thoughts count against it
#: (known problem D6).
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


MAX_STOP_SEQUENCES = 5
_INT32 = 2**31 - 1
_RANGES = {"temperature": (0, 2), "topP": (0, 1), "topK": (1, _INT32), "seed": (-_INT32, _INT32)}


def encode_generation(
    request: Request, target: Target, *, tooled: bool
) -> tuple[dict[str, Any], list[str], tuple[Note, ...]]:
    """Return `generationConfig`, texts to add to the system instruction, and notes.

    `tooled` is true if the request offers functions or built-in tools.
    """
    profile = profile_of(target.model)
    config, notes = _sampling(request.sampling, profile)
    thinking, changed = encode_thinking(request.thinking, request.sampling, profile)
    if thinking and not target.own_thinking:
        config["thinkingConfig"] = thinking
    output, asked, more = _output(request, profile, tooled=tooled, vertex=target.backend == "vertex")
    return {**config, **output}, asked, (*notes, *changed, *more)


def _sampling(sampling: Sampling, profile: ModelProfile) -> tuple[dict[str, Any], list[Note]]:
    config: dict[str, Any] = {}
    notes: list[Note] = []
    if sampling.max_tokens is not None:
        config["maxOutputTokens"] = max(1, min(sampling.max_tokens, profile.output_tokens))
        if config["maxOutputTokens"] != sampling.max_tokens:
            notes.append(Note("clamped", "max_tokens", f"the model's range is 1..{profile.output_tokens}"))
    stop = [text for text in sampling.stop if text]
    if stop:
        config["stopSequences"] = stop[:MAX_STOP_SEQUENCES]
        if len(stop) > MAX_STOP_SEQUENCES:
            notes.append(Note("dropped", "stop_sequences", f"Gemini takes at most {MAX_STOP_SEQUENCES}"))
    for field, word, allowed, value in (
        ("temperature", "temperature", profile.samples, sampling.temperature),
        ("topP", "top_p", profile.samples, sampling.top_p),
        ("topK", "top_k", profile.samples, sampling.top_k),
        ("seed", "seed", True, sampling.seed),
        ("presencePenalty", "presence_penalty", profile.penalties, sampling.presence_penalty or None),
        ("frequencyPenalty", "frequency_penalty", profile.penalties, sampling.frequency_penalty or None),
    ):
        if value is None:
            continue
        if not allowed:
            notes.append(Note("dropped", word, "this model takes no such setting"))
            continue
        low, high = _RANGES.get(field, (value, value))
        config[field] = min(max(value, low), high)
        if config[field] != value:
            notes.append(Note("clamped", word, f"Gemini's range is {low}..{high}"))
    return config, notes


def _output(
    request: Request, profile: ModelProfile, *, tooled: bool, vertex: bool
) -> tuple[dict[str, Any], list[str], tuple[Note, ...]]:
    """Encode the JSON output format; where tools exclude it, ask for it in the instructions (known problem B16)."""
    if request.output is None:
        return {}, [], ()
    schema = request.output.schema
    where = "output_config.format"
    wanted = None if schema is None else jsontext.decode(msgspec.json.decode, schema, f"{where}.schema")
    excluded = request.tools and request.tool_choice.mode in ("any", "none")
    if excluded or (tooled and not profile.json_with_functions):
        why = "JSON output cannot be enforced beside these tools; it is asked for in the instructions"
        return {}, [_instruction(schema)], (Note("moved", where, why),)
    config: dict[str, Any] = {"responseMimeType": "application/json"}
    if schema is None:
        return config, [], ()
    if not isinstance(wanted, dict) or wanted.get("type", "object") != "object":
        why = "only an object can be enforced; this schema is asked for in the instructions"
        return config, [_instruction(schema)], (Note("moved", where, why),)
    config["responseJsonSchema"], notes = clean_schema(wanted, where=f"{where}.schema", vertex=vertex)
    return config, [], notes


def _instruction(schema: bytes | None) -> str:
    text = "When you answer with text, answer with JSON only, without a code fence."
    return text if schema is None else f"{text} It must fit this JSON Schema: {schema.decode()}"
