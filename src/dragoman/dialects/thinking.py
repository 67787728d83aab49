"""Anthropic's `thinking` setting and thinking blocks, which Amazon Bedrock's APIs share."""

from __future__ import annotations

import msgspec

from dragoman.dialects.base import EFFORTS
from dragoman.ir import ON_THOUGHT, SealedSignature, Thinking, Thought, unseal
from dragoman.notes import Note

_THINKS = frozenset({"enabled", "adaptive", "between_tools"})


class WireThinking(msgspec.Struct):
    type: str
    budget_tokens: int | None = None
    display: str | None = None


def decode_thinking(
    wire: WireThinking | None, word: str | None, place: str = ""
) -> tuple[Thinking, list[Note]]:
    """Return the thinking mode, and notes about unknown values.

    `word` is the value of `output_config.effort`. `place` is the path prefix of `thinking` and `output_config` in the
    body, for notes.
    """
    effort = EFFORTS.get(word) if word else None
    notes: list[Note] = []
    if word and effort is None:
        notes.append(Note("dropped", f"{place}output_config.effort", f"{word!r} is not known"))
    if wire is None:
        return Thinking(effort=effort), notes
    if wire.type == "disabled":
        return Thinking(mode="off"), notes
    if wire.type not in _THINKS:
        notes.append(Note("dropped", f"{place}thinking", f"{wire.type!r} is not known"))
        return Thinking(effort=effort), notes
    budget = wire.budget_tokens if wire.type == "enabled" and effort is None else None
    show = wire.display != "omitted"
    return Thinking(mode="on", budget_tokens=budget or None, effort=effort, show=show), notes


def decode_thought(
    text: str, word: str, where: str, notes: list[Note]
) -> tuple[Thought | None, SealedSignature | None]:
    """Return the thought of a thinking block, and the signature that it carries for a later part.

    `word` is the block's signature. A signature for the thought itself is placed on the thought. A signature that this
    gateway did not seal is dropped with a note.
    """
    sealed = unseal(word) if word else None
    if sealed is not None and sealed.target == ON_THOUGHT:
        return Thought(text=text, signature=sealed.signature), None
    if sealed is None and word:
        notes.append(Note("dropped", where, "this signature is not Gemini's and means nothing to it"))
    return Thought(text=text) if text else None, sealed
