"""The fast path of `repair`: recognise a history that needs no repair, incrementally.

Only the messages that are new since the last turn are examined, and valid messages are returned as the same objects.
"""

from __future__ import annotations

import operator
from typing import Any, Literal

import msgspec

from dragoman.incremental.fold import IncrementalFold, store_fold, take_fold
from dragoman.ir import (
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
)
from dragoman.translation.repair.tool_searches import SERVER_TOOL_PARTS, expand_message

#: The kind of a message with respect to turn order.
Kind = Literal["start", "user", "results", "calls", "model", "system"]

#: Which kinds may follow which; any other order is left to `repair.history`.
_MAY_FOLLOW: dict[Kind, frozenset[Kind]] = {
    "start": frozenset({"user", "system"}),
    "user": frozenset({"model", "calls", "system"}),
    "model": frozenset({"user", "system"}),
    "calls": frozenset({"results"}),
    "results": frozenset({"user", "model", "calls", "system"}),
    "system": frozenset({"user", "model", "calls"}),
}


#: Consecutive messages that are joined: some clients send additional context as a message of its own.
_MAY_JOIN: frozenset[tuple[Kind, Kind]] = frozenset(
    {("user", "user"), ("system", "system"), ("model", "model"), ("model", "calls")}
)


class HistoryStep(msgspec.Struct, frozen=True):
    """The messages to send for one message of the client, with tool searches unfolded.

    `after` is the kind of the last of them. `calls` maps the ids of the calls without a result to their names. A step
    that `joins` replaces the last message of the step before it too.
    """

    messages: tuple[Message, ...]
    after: Kind = "start"
    calls: dict[str, str] = {}
    joins: bool = False


_START = HistoryStep(())


class _CheckedHistory(IncrementalFold[HistoryStep]):
    """The cached steps of a history; `said` is the concatenation of their messages."""

    def __init__(self) -> None:
        super().__init__()
        self.output: list[Message] = []

    def truncate(self, length: int) -> None:
        super().truncate(length)
        self.output = []
        self.append_steps(self.results)

    def append_steps(self, steps: list[HistoryStep]) -> None:
        for step in steps:
            if step.joins:
                del self.output[-1:]  # empty if it joins the first message, which is not in the course
            self.output += step.messages


def check_history(messages: tuple[Message, ...], *, ends_with_user: bool) -> tuple[Message, ...] | None:
    """Return the messages to send, with the tool names filled in on all results; None if anything needs repair."""
    if not messages:
        return None
    course: _CheckedHistory = take_fold(messages, "sound", _CheckedHistory)
    steps = course.results
    # The first message is sent as it is; if there are cached steps, it was examined before them.
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
    course.append_steps(steps[known:])
    store_fold(messages, "sound", course)
    if last.after == "calls" or (last.after == "model" and ends_with_user):
        return None
    return tuple(course.output) if steps and steps[0].joins else (messages[0], *course.output)


def _step(before: HistoryStep, message: Message) -> HistoryStep | None:
    """Return the next step, or None if the message is empty, out of order or has parts of another role."""
    role, parts = message.role, message.parts
    kinds = set(map(type, parts))
    if kinds == _RESULTS and role == "user":
        return _results_step(before, message)
    if not SERVER_TOOL_PARTS.isdisjoint(kinds):
        unfolded = expand_message(message)
        if unfolded[0] is not message:
            return _steps(before, unfolded)
    kind: Kind = "calls" if ToolCall in kinds else role
    joins = kind not in _MAY_FOLLOW[before.after]
    if (joins and (before.after, kind) not in _MAY_JOIN) or not kinds or not kinds <= _ALLOWED_PARTS[role]:
        return None
    calls: dict[str, str] = {}
    for part in parts:
        if isinstance(part, ToolCall):
            if part.id in calls:
                return None
            calls[part.id] = part.name
        elif isinstance(part, Text) and (role != "model" if part.signature is not None else not part.text):
            return None
    if kinds == _THOUGHTS and not any(map(_SIGNATURE, parts)):  # unsigned thoughts are never sent back
        return None
    return HistoryStep((before.messages[-1].join(message) if joins else message,), kind, calls, joins)


def _steps(before: HistoryStep, unfolded: tuple[Message, ...]) -> HistoryStep | None:
    """Return the steps of several messages as one step."""
    said: list[Message] = []
    for message in unfolded:
        step = _step(before, message)
        if step is None or step.joins:
            return None
        said += step.messages
        before = step
    return HistoryStep(tuple(said), before.after, before.calls)


def _results_step(before: HistoryStep, message: Message) -> HistoryStep | None:
    """Return a step if the message has exactly one result for each call of the step before."""
    parts, calls = message.parts, before.calls
    ids = [*map(_CALL_ID, parts)]
    if ids != [*calls] and (len(ids) != len(calls) or calls.keys() != {*ids}):
        return None
    notebook = message.derived
    noted: tuple[Message, Message] | None = notebook.get("named")
    if noted is None or noted[0] is not before.messages[-1]:
        results = dict(zip(ids, parts, strict=True))
        noted = notebook["named"] = before.messages[-1], _with_names(calls, results)
    return HistoryStep((noted[1],), "results")


def _with_names(calls: dict[str, str], results: dict[str, Any]) -> Message:
    """Return the results in the order of their calls, each with the name of its tool."""
    named = [msgspec.structs.replace(results[call_id], name=name) for call_id, name in calls.items()]
    return Message(role="user", parts=tuple(named))


_CALL_ID, _SIGNATURE = operator.attrgetter("call_id"), operator.attrgetter("signature")
_RESULTS, _THOUGHTS = {ToolResult}, {Thought}
_ALLOWED_PARTS: dict[Role, set[type[Part]]] = {
    "user": {Text, Media, Native},
    "system": {Text},
    "model": {Text, Thought, ToolCall, ServerCall, ServerResult, Native},
}
