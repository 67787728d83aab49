"""The fast path of `repair`: recognise a history that needs no repair, incrementally.

Only the messages that are new since the last turn are examined, and valid messages are returned as the same objects.
"""

from __future__ import annotations

import operator
from itertools import chain
from typing import Any, Literal

import msgspec

from dragoman.incremental.fold import derive, fold, join_messages
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
    """What one message of the client adds to the messages to send.

    `messages` are sent for this message, with tool searches expanded; the last of them may still be joined with the
    message that follows. `closed` are the messages of the step before that this one leaves as they are. `after` is the
    kind of the last message. `calls` maps the ids of the calls without a result to their names. A step that `joins` has
    replaced the last message before it.
    """

    messages: tuple[Message, ...]
    after: Kind = "start"
    calls: dict[str, str] = {}
    joins: bool = False
    closed: tuple[Message, ...] = ()


_START: HistoryStep | None = HistoryStep(())
_CLOSED = operator.attrgetter("closed")


def check_history(messages: tuple[Message, ...], *, ends_with_user: bool) -> tuple[Message, ...] | None:
    """Return the messages to send, with the tool names filled in on all results; None if anything needs repair."""
    if not messages:
        return None
    steps = fold(messages, "checked", _START, _step)
    last = steps[-1]
    if last is None or last.after == "calls" or (last.after == "model" and ends_with_user):
        return None
    return (*chain.from_iterable(map(_CLOSED, steps)), *last.messages)


def _step(before: HistoryStep | None, message: Message) -> HistoryStep | None:
    """Return the next step, or None if the message is empty, out of order or has parts of another role.

    Also return None after a message that needs repair. The first message is copied, see `fold`.
    """
    if before is None:
        return None
    role, parts = message.role, message.parts
    if before is _START:
        message = Message(role=role, parts=parts)
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
    calls = _calls_of(role, parts)
    if calls is None or (kinds == _THOUGHTS and not any(map(_SIGNATURE, parts))):
        return None  # unsigned thoughts are never sent back
    if not joins:
        return HistoryStep((message,), kind, calls, False, before.messages)
    joined = join_messages(before.messages[-1], message)
    return HistoryStep((joined,), kind, calls, True, before.messages[:-1])


def _calls_of(role: Role, parts: tuple[Part, ...]) -> dict[str, str] | None:
    """Return the ids and names of the calls; None if an id occurs twice or a text is empty or wrongly signed."""
    calls: dict[str, str] = {}
    for part in parts:
        if isinstance(part, ToolCall):
            if part.id in calls:
                return None
            calls[part.id] = part.name
        elif isinstance(part, Text) and (role != "model" if part.signature is not None else not part.text):
            return None
    return calls


def _steps(before: HistoryStep, unfolded: tuple[Message, ...]) -> HistoryStep | None:
    """Return the steps of several messages as one step."""
    output: list[Message] = []
    closed = before.messages
    for message in unfolded:
        step = _step(before, message)
        if step is None or step.joins:
            return None
        output += step.messages
        before = step
    return HistoryStep(tuple(output), before.after, before.calls, False, closed)


def _results_step(before: HistoryStep, message: Message) -> HistoryStep | None:
    """Return a step if the message has exactly one result for each call of the step before."""
    parts, calls = message.parts, before.calls
    ids = [*map(_CALL_ID, parts)]
    if ids != [*calls] and (len(ids) != len(calls) or calls.keys() != {*ids}):
        return None
    named = derive(message, "named", (before.messages[-1],), _with_names, calls, ids, parts)
    return HistoryStep((named,), "results", {}, False, before.messages)


def _with_names(calls: dict[str, str], ids: list[str], parts: tuple[Any, ...]) -> Message:
    """Return the results `parts` in the order of their calls, each with the name of its tool."""
    results = dict(zip(ids, parts, strict=True))
    named = [msgspec.structs.replace(results[call_id], name=name) for call_id, name in calls.items()]
    return Message(role="user", parts=tuple(named))


_CALL_ID, _SIGNATURE = operator.attrgetter("call_id"), operator.attrgetter("signature")
_RESULTS, _THOUGHTS = {ToolResult}, {Thought}
_ALLOWED_PARTS: dict[Role, set[type[Part]]] = {
    "user": {Text, Media, Native},
    "system": {Text},
    "model": {Text, Thought, ToolCall, ServerCall, ServerResult, Native},
}
