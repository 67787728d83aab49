"""History integrity: whatever a client kept of a conversation leaves as one Google accepts.

Behind every step's calls stand all its results, in call order, in one message; nothing is empty, nothing
is answered twice, a result without its call becomes text, a call without its result gets an error (C1 to C11).
"""

from __future__ import annotations

from itertools import groupby

import msgspec

from dragoman.errors import InvalidRequest
from dragoman.ir import Message, Part, Text, Thought, ToolCall, ToolResult
from dragoman.notes import Note

LOST_RESULT = "The result of this call was lost before it reached the model."
LEADING_USER = "(The beginning of this conversation is not shown.)"
TRAILING_USER = "Continue."


def repair(
    messages: tuple[Message, ...], *, ends_with_user: bool
) -> tuple[tuple[Message, ...], tuple[Note, ...]]:
    notes: list[Note] = []
    spoken = _drop_empty(messages, notes)
    paired = _pair(_merge(spoken), notes)
    repaired = _merge(paired)
    if not repaired:
        raise InvalidRequest("there is no text, file or tool result in any message", where="messages")
    if repaired[0].role == "model":
        notes.append(
            Note("repaired", "messages[0]", "a conversation must begin with the user; a turn was added")
        )
        repaired = [_user(LEADING_USER), *repaired]
    if ends_with_user and repaired[-1].role == "model":
        why = "this model does not continue its own turn; it is asked to go on"
        notes.append(Note("repaired", f"messages[{len(messages) - 1}]", why))
        repaired = [*repaired, _user(TRAILING_USER)]
    return tuple(repaired), tuple(notes)


def _user(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),))


def _drop_empty(messages: tuple[Message, ...], notes: list[Note]) -> list[Message]:
    kept: list[Message] = []
    for index, message in enumerate(messages):
        if all(map(_says_something, message.parts)) and message.parts:
            kept.append(message)
            continue
        parts = tuple(part for part in message.parts if _says_something(part))
        if parts:
            kept.append(Message(role=message.role, parts=parts))
        else:
            notes.append(Note("dropped", f"messages[{index}]", "it is empty"))
    return kept


def _says_something(part: Part) -> bool:
    """An unsigned thought is never sent back, so it cannot hold up a message; a signature always counts."""
    match part:
        case Text():
            return bool(part.text) or part.signature is not None
        case Thought():
            return part.signature is not None
        case _:
            return True


def _merge(messages: list[Message]) -> list[Message]:
    """Neighbours of one role become one message; results stay apart from what the user says after them."""
    merged: list[Message] = []
    for _, run in groupby(messages, key=_kind):
        group = list(run)
        if len(group) == 1:
            merged.append(group[0])
        else:
            parts = tuple(part for message in group for part in message.parts)
            merged.append(Message(role=group[0].role, parts=parts))
    return merged


def _kind(message: Message) -> tuple[str, bool]:
    return message.role, message.role == "user" and isinstance(message.parts[0], ToolResult)


class _Slot(msgspec.Struct):
    """A call waiting for its result."""

    call: ToolCall
    result: ToolResult | None = None


def _pair(messages: list[Message], notes: list[Note]) -> list[Message]:
    pairing = _Pairing(notes)
    steps = [
        (pairing.rest(message, index), pairing.take_calls(message)) for index, message in enumerate(messages)
    ]
    paired: list[Message] = []
    for index, (rest, slots) in enumerate(steps):
        if rest.parts:
            paired.append(rest)
        if slots:
            results = tuple(pairing.result_of(slot, index) for slot in slots)
            paired.append(Message(role="user", parts=results))
    return paired


class _Pairing:
    """Gives each result to the nearest call before it that has its id."""

    def __init__(self, notes: list[Note]) -> None:
        self._notes = notes
        self._by_id: dict[str, _Slot] = {}

    def take_calls(self, message: Message) -> list[_Slot]:
        slots = [_Slot(part) for part in message.parts if isinstance(part, ToolCall)]
        self._by_id.update((slot.call.id, slot) for slot in slots)
        return slots

    def rest(self, message: Message, index: int) -> Message:
        """The message without the results that found their calls."""
        if not any(isinstance(part, ToolResult) for part in message.parts):
            return message
        parts = [
            self._place(part, index) if isinstance(part, ToolResult) else (part,) for part in message.parts
        ]
        return Message(role=message.role, parts=tuple(part for group in parts for part in group))

    def _place(self, result: ToolResult, index: int) -> tuple[Part, ...]:
        slot = self._by_id.get(result.call_id)
        where = f"messages[{index}]"
        if slot is None:
            why = f"no tool call has the id {result.call_id!r}; its result is sent as text"
            self._notes.append(Note("repaired", where, why))
            return (Text(text="Result of an earlier tool call:"), *result.content)
        if slot.result is not None:
            self._notes.append(Note("dropped", where, f"the call {result.call_id!r} was answered twice"))
            return ()
        slot.result = msgspec.structs.replace(result, name=slot.call.name)
        return ()

    def result_of(self, slot: _Slot, index: int) -> ToolResult:
        if slot.result is not None:
            return slot.result
        why = f"the call {slot.call.id!r} has no result; an error stands in for it"
        self._notes.append(Note("repaired", f"messages[{index}]", why))
        content = (Text(text=LOST_RESULT),)
        return ToolResult(call_id=slot.call.id, name=slot.call.name, content=content, is_error=True)
