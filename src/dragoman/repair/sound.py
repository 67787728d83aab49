"""The common case, known at a glance: a history that needs no repair keeps its very messages."""

from __future__ import annotations

import operator
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


#: Neighbours that become one message: some programs send what they tell beside a prompt on its own.
_JOINED: frozenset[tuple[Kind, Kind]] = frozenset(
    {("user", "user"), ("system", "system"), ("model", "model"), ("model", "calls")}
)


class Step(msgspec.Struct, frozen=True):
    """What one message of the client's leaves as, searches unfolded, and where that leaves the conversation.

    `calls` gives the names of those that wait for their results; one that `joins` stands for the message before it too.
    """

    said: tuple[Message, ...]
    after: Kind = "start"
    calls: dict[str, str] = {}
    joins: bool = False


_START = Step(())


class _Sound(Course[Step]):
    """`said` is all that the steps leave as."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[Message] = []

    def cut(self, length: int) -> None:
        super().cut(length)
        self.said = []
        self.say(self.worked)

    def say(self, steps: list[Step]) -> None:
        for step in steps:
            if step.joins:
                del self.said[-1:]  # where nothing is, it is the first message of all
            self.said += step.said


def sound_history(messages: tuple[Message, ...], *, ends_with_user: bool) -> tuple[Message, ...] | None:
    """The messages with the names of their calls on all results; None if anything is out of order."""
    if not messages:
        return None
    course: _Sound = take_course(messages, "sound", _Sound)
    steps = course.worked
    # The first message leaves as it is; where steps follow it, it was looked at before them.
    last = steps[-1] if steps else _step(_START, messages[0])
    if last is None:
        return None
    known = len(steps)
    new = messages[1 + known :]
    for message in new:
        last = _step(last, message)
        if last is None:
            return None
        steps.append(last)
    course.messages += new
    course.say(steps[known:])
    keep_course(messages, "sound", course)
    if last.after == "calls" or (last.after == "model" and ends_with_user):
        return None
    return tuple(course.said) if steps and steps[0].joins else (messages[0], *course.said)


def _step(before: Step, message: Message) -> Step | None:
    """None if the message cannot stand there as it is: nothing is empty, and nobody says but what is theirs."""
    role, parts = message.role, message.parts
    kinds = set(map(type, parts))
    if kinds == _RESULTS and role == "user":
        return _answer(before, message)
    if not SERVED.isdisjoint(kinds):
        unfolded = unfold(message)
        if unfolded[0] is not message:
            return _steps(before, unfolded)
    kind: Kind = "calls" if ToolCall in kinds else role
    joins = kind not in _MAY_FOLLOW[before.after]
    if (joins and (before.after, kind) not in _JOINED) or not kinds or not kinds <= _SAYS[role]:
        return None
    calls: dict[str, str] = {}
    for part in parts:
        if isinstance(part, ToolCall):
            if part.id in calls:
                return None
            calls[part.id] = part.name
        elif isinstance(part, Text) and (role != "model" if part.signature is not None else not part.text):
            return None
    if kinds == _THOUGHTS and not any(map(_SIGNATURE, parts)):  # unsigned ones are never sent back
        return None
    return Step((before.said[-1].joined(message) if joins else message,), kind, calls, joins)


def _steps(before: Step, unfolded: tuple[Message, ...]) -> Step | None:
    """One after the other, as one."""
    said: list[Message] = []
    for message in unfolded:
        step = _step(before, message)
        if step is None or step.joins:
            return None
        said += step.said
        before = step
    return Step(tuple(said), before.after, before.calls)


def _answer(before: Step, message: Message) -> Step | None:
    """The results of exactly the calls before them, none twice."""
    parts, calls = message.parts, before.calls
    ids = [*map(_CALL_ID, parts)]
    if ids != [*calls] and (len(ids) != len(calls) or calls.keys() != {*ids}):
        return None
    notebook = message.notebook
    noted: tuple[Message, Message] | None = notebook.get("named")
    if noted is None or noted[0] is not before.said[-1]:
        results = dict(zip(ids, parts, strict=True))
        noted = notebook["named"] = before.said[-1], _named(calls, results)
    return Step((noted[1],), "results")


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
