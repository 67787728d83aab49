"""The common case, known at a glance: a history that needs no repair keeps its very messages."""

from __future__ import annotations

import operator
from itertools import chain
from typing import Any, Literal

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
from dragoman.repair.searches import SERVED, unfold

#: What one message is, as far as turn order goes.
Kind = Literal["start", "user", "results", "calls", "model", "system"]

#: What may stand behind what; the rest is for `repair.history`.
_MAY_FOLLOW: dict[Kind, frozenset[Kind]] = {
    "start": frozenset({"user", "system"}),
    "user": frozenset({"model", "calls", "system"}),
    "model": frozenset({"user", "system"}),
    "calls": frozenset({"results"}),
    "results": frozenset({"user", "model", "calls", "system"}),
    "system": frozenset({"user", "model", "calls"}),
}


class Step(msgspec.Struct, frozen=True):
    """What one message of the client's leaves as, searches unfolded, and where that leaves the conversation.

    `calls` gives the names of those that wait for their results.
    """

    said: tuple[Message, ...]
    after: Kind = "start"
    calls: dict[str, str] = {}


_START = Step(())
_NO_CALLS: dict[str, str] = {}


def sound_history(messages: tuple[Message, ...], *, ends_with_user: bool) -> tuple[Message, ...] | None:
    """The messages with the names of their calls on all results; None if anything is out of order."""
    first = _step(_START, messages[0]) if messages else None
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
    return (*first.said, *chain.from_iterable(map(_SAID, course.worked)))


_SAID = operator.attrgetter("said")


def _step(before: Step, message: Message) -> Step | None:
    """None if the message cannot stand there as it is."""
    role, parts = message.role, message.parts
    types = [*map(type, parts)]
    kinds = set(types)
    if kinds == _RESULTS and role == "user":
        return _answer(before, message)
    if not SERVED.isdisjoint(kinds):
        unfolded = unfold(message)
        if unfolded[0] is not message:
            return _steps(before, unfolded)
    kind: Kind = "calls" if ToolCall in kinds else role
    if kind not in _MAY_FOLLOW[before.after] or not _is_whole(role, parts, kinds):
        return None
    if kind != "calls":
        return Step((message,), kind, _NO_CALLS)
    calls = {part.id: part.name for part in parts if isinstance(part, ToolCall)}
    return Step((message,), kind, calls) if len(calls) == types.count(ToolCall) else None


def _steps(before: Step, unfolded: tuple[Message, ...]) -> Step | None:
    """One after the other, as one."""
    said: list[Message] = []
    for message in unfolded:
        step = _step(before, message)
        if step is None:
            return None
        said += step.said
        before = step
    return Step(tuple(said), before.after, before.calls)


def _is_whole(role: Role, parts: tuple[Part, ...], kinds: set[type[Part]]) -> bool:
    """Nothing empty, nothing but the speaker's own; unsigned thoughts are never sent back."""
    if not kinds or not kinds <= _SAYS[role]:
        return False
    for part in parts:
        if isinstance(part, Text) and (role != "model" if part.signature is not None else not part.text):
            return False
    return kinds != _THOUGHTS or any(map(_SIGNATURE, parts))


def _answer(before: Step, message: Message) -> Step | None:
    """The results of exactly the calls before them, none twice."""
    parts, calls = message.parts, before.calls
    results = dict(zip(map(_CALL_ID, parts), parts, strict=True))
    if results.keys() != calls.keys() or len(results) < len(parts):
        return None
    notebook = message.notebook
    noted: tuple[Message, Message] | None = notebook.get("named")
    if noted is None or noted[0] is not before.said[-1]:
        noted = notebook["named"] = before.said[-1], _named(calls, results)
    return Step((noted[1],), "results", _NO_CALLS)


def _named(calls: dict[str, str], results: dict[str, Any]) -> Message:
    """The results in the order of their calls, each with its call's name."""
    named = [msgspec.structs.replace(results[call_id], name=name) for call_id, name in calls.items()]
    return Message(role="user", parts=tuple(named))


_CALL_ID, _SIGNATURE = operator.attrgetter("call_id"), operator.attrgetter("signature")
_RESULTS, _THOUGHTS = {ToolResult}, {Thought}
_SAYS: dict[Role, set[type[Part]]] = {
    "user": {Text, Media, Native},
    "system": {Text},
    "model": {Text, Thought, ToolCall, ServerCall, ServerResult, Native},
}
