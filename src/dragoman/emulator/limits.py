"""What cuts an answer short: the output cap, stop sequences, and thoughts nobody asked to see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from dragoman.emulator.model import Call, Reply
from dragoman.emulator.models import Model
from dragoman.emulator.tokens import count_text, count_value

_CHARS_PER_TOKEN = 4
_EFFORT = {"MINIMAL": 0, "LOW": 1, "MEDIUM": 2, "HIGH": 4}


class Limited(msgspec.Struct, frozen=True, kw_only=True):
    """A reply within its limits, and how it ended."""

    reply: Reply
    finish: Literal["STOP", "MAX_TOKENS"]
    thought_tokens: int
    show_thoughts: bool


def apply_limits(request: Mapping[str, Any], reply: Reply, model: Model) -> Limited:
    config = request.get("generationConfig", {})
    cap = min(config.get("maxOutputTokens") or model.output_limit, model.output_limit)
    thinking = config.get("thinkingConfig", {})
    # Thoughts count against the cap; half of it is left, or a small cap would always give an empty answer.
    thoughts = min(_thought_tokens(thinking, reply, model), cap // 2)
    text = _stop_at(reply.text, config.get("stopSequences", ()))
    room = cap - thoughts
    shown = text[: room * _CHARS_PER_TOKEN]
    calls = _calls_within(reply.calls, room - count_text(shown))
    complete = shown == text and len(calls) == len(reply.calls)
    return Limited(
        reply=msgspec.structs.replace(reply, text=shown, calls=calls),
        finish="STOP" if complete else "MAX_TOKENS",
        thought_tokens=thoughts,
        show_thoughts=bool(thinking.get("includeThoughts")) and thoughts > 0,
    )


def _thought_tokens(thinking: Mapping[str, Any], reply: Reply, model: Model) -> int:
    level = thinking.get("thinkingLevel", "")
    budget = thinking.get("thinkingBudget")
    effort = _EFFORT.get(level, 2 if model.thinks or (budget or 0) != 0 else 0)
    if budget == 0:
        effort = 0
    tokens = effort * (8 + count_text(reply.thought))
    return min(tokens, budget) if budget is not None and budget > 0 else tokens


def _stop_at(text: str, stops: Sequence[str]) -> str:
    found = [position for stop in stops if stop and (position := text.find(stop)) >= 0]
    return text[: min(found)] if found else text


def _calls_within(calls: Sequence[Call], room: int) -> tuple[Call, ...]:
    kept: list[Call] = []
    for call in calls:
        room -= count_value({"name": call.name, "args": call.args})
        if room < 0:
            break
        kept.append(call)
    return tuple(kept)
