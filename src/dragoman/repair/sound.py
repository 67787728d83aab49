"""The common case, known at a glance: a history that needs no repair keeps its very messages."""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman.ir import Media, Message, Native, Text, Thought, ToolCall, ToolResult


class Shape(msgspec.Struct, frozen=True):
    """What one message is, as far as turn order goes; `broken` needs a closer look."""

    kind: Literal["user", "results", "calls", "model", "system", "broken"]
    ids: tuple[str, ...] = ()


#: What may stand behind what; the rest is for `repair.history`.
_MAY_FOLLOW: dict[str, frozenset[str]] = {
    "start": frozenset({"user", "system"}),
    "user": frozenset({"model", "calls", "system"}),
    "model": frozenset({"user", "system"}),
    "calls": frozenset({"results"}),
    "results": frozenset({"user", "model", "calls", "system"}),
    "system": frozenset({"user", "model", "calls"}),
}


def sound_history(messages: tuple[Message, ...], *, ends_with_user: bool) -> tuple[Message, ...] | None:
    """The messages with the names of their calls on all results; None if anything is out of order."""
    sound: list[Message] = []
    before: str = "start"
    calls: tuple[str, ...] = ()
    for message in messages:
        shape: Shape | None = message.notebook.get("shape")
        if shape is None:
            shape = message.notebook["shape"] = _shape(message)
        if shape.kind not in _MAY_FOLLOW[before]:
            return None
        if shape.kind == "results":
            if shape.ids != calls and (len(shape.ids) != len(calls) or set(shape.ids) != set(calls)):
                return None
            message = _named(sound[-1], message)
        before, calls = shape.kind, shape.ids
        sound.append(message)
    unfinished = before in ("start", "calls") or (before == "model" and ends_with_user)
    return None if unfinished else tuple(sound)


def _shape(message: Message) -> Shape:
    parts = message.parts
    match message.role:
        case "user" if parts and all(isinstance(part, ToolResult) for part in parts):
            ids = tuple(part.call_id for part in parts if isinstance(part, ToolResult))
            return Shape("results", ids) if len(set(ids)) == len(ids) else Shape("broken")
        case "user" if parts and all(_is_plain(part) for part in parts):
            return Shape("user")
        case "system" if parts and all(isinstance(part, Text) and _is_plain(part) for part in parts):
            return Shape("system")
        case "model":
            return _model_shape(message)
        case _:
            return Shape("broken")


def _is_plain(part: object) -> bool:
    return isinstance(part, Media | Native) or (
        isinstance(part, Text) and bool(part.text) and part.signature is None
    )


def _model_shape(message: Message) -> Shape:
    """Nothing empty, nothing but the model's own, no id twice; unsigned thoughts are never sent back."""
    ids = tuple(part.id for part in message.parts if isinstance(part, ToolCall))
    legal = all(
        isinstance(part, ToolCall | Thought | Native)
        or (isinstance(part, Text) and (part.text or part.signature))
        for part in message.parts
    )
    says = any(not isinstance(part, Thought) or part.signature for part in message.parts)
    if not legal or not says or len(set(ids)) != len(ids):
        return Shape("broken")
    return Shape("calls" if ids else "model", ids)


def _named(step: Message, results: Message) -> Message:
    """The results in the order of their calls, each with its call's name."""
    noted: tuple[Message, Message] | None = results.notebook.get("named")
    if noted is None or noted[0] is not step:
        noted = results.notebook["named"] = step, _name(step, results)
    return noted[1]


def _name(step: Message, results: Message) -> Message:
    by_id = {part.call_id: part for part in results.parts if isinstance(part, ToolResult)}
    calls = (part for part in step.parts if isinstance(part, ToolCall))
    named = tuple(msgspec.structs.replace(by_id[call.id], name=call.name) for call in calls)
    return Message(role="user", parts=named)
