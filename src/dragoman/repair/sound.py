"""The common case, known at a glance: a history that needs no repair keeps its very messages."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import chain
from typing import Literal

import msgspec

from dragoman.ir import (
    Course,
    Media,
    Message,
    Native,
    Part,
    Role,
    ServerCall,
    ServerResult,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    keep_course,
    take_course,
)
from dragoman.repair.searches import unfold

#: What one message is, as far as turn order goes; `broken` needs a closer look. With the ids of calls or results.
Kind = Literal["user", "results", "calls", "model", "system", "broken"]
Shape = tuple[Kind, tuple[str, ...]]
_BROKEN: Shape = ("broken", ())

#: What may stand behind what; the rest is for `repair.history`.
_MAY_FOLLOW: dict[str, frozenset[str]] = {
    "start": frozenset({"user", "system"}),
    "user": frozenset({"model", "calls", "system"}),
    "model": frozenset({"user", "system"}),
    "calls": frozenset({"results"}),
    "results": frozenset({"user", "model", "calls", "system"}),
    "system": frozenset({"user", "model", "calls"}),
}


class Step(msgspec.Struct, frozen=True):
    """What one message of the client's leaves as, searches unfolded, and where that leaves the conversation."""

    said: tuple[Message, ...]
    after: str = "start"  # a `Kind`
    calls: tuple[str, ...] = ()


def sound_history(messages: tuple[Message, ...], *, ends_with_user: bool) -> tuple[Message, ...] | None:
    """The messages with the names of their calls on all results; None if anything is out of order."""
    first = _step(Step(()), messages[0]) if messages else None
    if first is None:
        return None
    course: Course[Step] = take_course(messages, "sound")
    last = course.worked[-1] if course.worked else first
    new = messages[1 + len(course.worked) :]
    steps: list[Step] = []
    for message in new:
        step = _step(last, message)
        if step is None:
            return None
        steps.append(step)
        last = step
    course.extend(new, steps)
    keep_course(messages, "sound", course)
    if last.after == "calls" or (last.after == "model" and ends_with_user):
        return None
    return tuple(chain(first.said, *map(_SAID, course.worked)))


_SAID = operator.attrgetter("said")


def _step(before: Step, message: Message) -> Step | None:
    """None if the message cannot stand there as it is."""
    said: list[Message] = []
    after, calls = before.after, before.calls
    spoke: Sequence[Message] = before.said
    for one in unfold(message):
        kind, ids = _shape(one)
        if kind not in _MAY_FOLLOW[after]:
            return None
        if kind == "results":
            if ids != calls and (len(ids) != len(calls) or set(ids) != set(calls)):
                return None
            one = _named(spoke[-1], one)
        after, calls = kind, ids
        said.append(one)
        spoke = said
    return Step(tuple(said), after, calls)


def _shape(message: Message) -> Shape:
    """Nothing empty, nothing but the speaker's own, no id twice; unsigned thoughts are never sent back."""
    role, parts = message.role, message.parts
    kinds = set(map(type, parts))
    if kinds == _RESULTS and role == "user":
        return _once("results", tuple(map(_CALL_ID, parts)))
    if not kinds or not kinds <= _SAYS[role]:
        return _BROKEN
    for part in parts:
        if isinstance(part, Text) and (role != "model" if part.signature is not None else not part.text):
            return _BROKEN
    if role != "model":
        return role, ()
    if ToolCall in kinds:
        return _once("calls", tuple([part.id for part in parts if isinstance(part, ToolCall)]))
    return ("model", ()) if kinds != _THOUGHTS or any(map(_SIGNATURE, parts)) else _BROKEN


def _once(kind: Kind, ids: tuple[str, ...]) -> Shape:
    return (kind, ids) if len(set(ids)) == len(ids) else _BROKEN


_CALL_ID, _SIGNATURE = operator.attrgetter("call_id"), operator.attrgetter("signature")
_RESULTS, _THOUGHTS = {ToolResult}, {Thought}
_SAYS: dict[Role, set[type[Part]]] = {
    "user": {Text, Media, Native},
    "system": {Text},
    "model": {Text, Thought, ToolCall, ServerCall, ServerResult, Native},
}


def _named(step: Message, results: Message) -> Message:
    """The results in the order of their calls, each with its call's name."""
    noted: tuple[Message, Message] | None = results.notebook.get("named")
    if noted is None or noted[0] is not step:
        noted = results.notebook["named"] = step, _name(step, results)
    return noted[1]


def _name(step: Message, results: Message) -> Message:
    by_id = dict(zip(map(_CALL_ID, results.parts), results.parts, strict=True))
    calls = [part for part in step.parts if isinstance(part, ToolCall)]
    named = [msgspec.structs.replace(by_id[call.id], name=call.name) for call in calls]
    return Message(role="user", parts=tuple(named))
