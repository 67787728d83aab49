"""Repair a history so that Google accepts it, whatever a client kept of the conversation.

Google requires that all results of a step follow its calls in one message, in call order. Empty messages and second
results of a call are dropped, a result without its call becomes text, and a call without a result gets an error
result (known problems C1 to C11). The last resort is `history_as_text`: every call and result as text (C11).
"""

from __future__ import annotations

from collections import deque
from itertools import count, groupby
from operator import itemgetter

import msgspec

from dragoman.errors import InvalidRequest
from dragoman.ir import (
    Media,
    Message,
    Part,
    Role,
    ServerCall,
    ServerResult,
    Text,
    Thought,
    ToolCall,
    ToolResult,
)
from dragoman.notes import Note
from dragoman.translation.repair.fast_path import check_history
from dragoman.translation.repair.tool_searches import expand_searches

LOST_RESULT = "The result of this call was lost before it reached the model."
LEADING_USER = "(The beginning of this conversation is not shown.)"
TRAILING_USER = "Continue."

#: A message and its index in the client's request, for notes.
_Placed = tuple[int, Message]


def repair(
    messages: tuple[Message, ...], *, ends_with_user: bool
) -> tuple[tuple[Message, ...], tuple[Note, ...]]:
    """Return the repaired messages and a note for each repair. Raise `InvalidRequest` if nothing is left.

    With `ends_with_user` a history that ends with the model's turn gets a user turn, for models that refuse to
    continue their own turn.
    """
    sound = check_history(messages, ends_with_user=ends_with_user)
    if sound is not None:
        return sound, ()
    messages = expand_searches(messages)
    notes: list[Note] = []
    spoken = [
        placed for index, message in enumerate(messages) for placed in _split_by_role(index, message, notes)
    ]
    repaired = [message for _, message in _merge(_pair(_merge(spoken), notes))]
    if not repaired:
        raise InvalidRequest("there is no text, file or tool result in any message", where="messages")
    if repaired[0].role == "model":
        why = "a conversation must begin with the user; a turn was added"
        notes.append(Note("repaired", "messages[0]", why))
        repaired = [_user(LEADING_USER), *repaired]
    if ends_with_user and repaired[-1].role == "model":
        why = "this model does not continue its own turn; it is asked to go on"
        notes.append(Note("repaired", f"messages[{len(messages) - 1}]", why))
        repaired = [*repaired, _user(TRAILING_USER)]
    return tuple(repaired), tuple(notes)


def _user(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),))


def _split_by_role(index: int, message: Message, notes: list[Note]) -> list[_Placed]:
    """Return the message if it is valid; otherwise split it by role and drop empty parts."""
    role = message.role
    for part in message.parts:
        if not _is_valid(role, part):
            break
    else:
        if message.parts:
            return [(index, message)]
    owned = [(_speaker(role, part), part) for part in message.parts]
    said = [(speaker, _unsigned(speaker, part)) for speaker, part in owned]
    if any(speaker != role for speaker, _ in said):
        notes.append(Note("repaired", f"messages[{index}]", "parts that are not its speaker's were moved"))
    said = [(speaker, part) for speaker, part in said if _has_content(part)]
    if not said:
        notes.append(Note("dropped", f"messages[{index}]", "it is empty"))
    runs = groupby(said, key=itemgetter(0))
    return [(index, Message(role=speaker, parts=tuple(part for _, part in run))) for speaker, run in runs]


def _is_valid(role: Role, part: Part) -> bool:
    if isinstance(part, Text) and part.signature is None:  # the common case
        return part.text != ""
    return _speaker(role, part) == role and _unsigned(role, part) is part and _has_content(part)


def _speaker(role: Role, part: Part) -> Role:
    """Return the role that a part belongs to: calls and server-side results to the model, results to the user.

    A file in a system message becomes the user's too.
    """
    if isinstance(part, ToolCall | ServerCall | ServerResult):
        return "model"
    if isinstance(part, ToolResult) or (isinstance(part, Media) and role == "system"):
        return "user"
    return role


def _unsigned(role: Role, part: Part) -> Part:
    """Remove a signature from a part that is not the model's."""
    if role == "model" or not isinstance(part, Text | Thought) or part.signature is None:
        return part
    return msgspec.structs.replace(part, signature=None)


def _has_content(part: Part) -> bool:
    """Whether a part has content for Google: signed parts always do, unsigned thoughts are never sent back."""
    if isinstance(part, Text):
        return part.text != "" or part.signature is not None
    return not isinstance(part, Thought) or part.signature is not None


def _merge(messages: list[_Placed]) -> list[_Placed]:
    """Join consecutive messages of one role; messages of results stay separate from the user's other messages."""
    merged: list[_Placed] = []
    for _, run in groupby(messages, key=_kind):
        group = list(run)
        if len(group) == 1:
            merged.append(group[0])
        else:
            index, first = group[0]
            parts = tuple(part for _, message in group for part in message.parts)
            merged.append((index, Message(role=first.role, parts=parts)))
    return merged


def _kind(placed: _Placed) -> tuple[str, bool]:
    message = placed[1]
    return message.role, isinstance(message.parts[0], ToolResult)


class _Slot(msgspec.Struct):
    """A call and its result, if it was found."""

    call: ToolCall
    result: ToolResult | None = None


def _pair(messages: list[_Placed], notes: list[Note]) -> list[_Placed]:
    """Put the results of each step into one message directly after its calls."""
    pairing = _Pairing(notes)
    steps = [(index, *pairing.take(message, index)) for index, message in messages]
    paired: list[_Placed] = []
    for index, rest, slots in steps:
        if rest.parts:
            paired.append((index, rest))
        if slots:
            results = tuple(pairing.result_of(slot, index) for slot in slots)
            paired.append((index, Message(role="user", parts=results)))
    return paired


class _Pairing:
    """Assigns each result to the nearest preceding call with its id."""

    def __init__(self, notes: list[Note]) -> None:
        self._notes = notes
        self._open_by_id: dict[str, deque[_Slot]] = {}

    def take(self, message: Message, index: int) -> tuple[Message, list[_Slot]]:
        """Return the message without the results that were assigned to calls, and slots for its own calls."""
        if message.role == "model":
            return self._take_calls(message, index)
        if not any(isinstance(part, ToolResult) for part in message.parts):
            return message, []
        groups = (
            self._place(part, index) if isinstance(part, ToolResult) else (part,) for part in message.parts
        )
        return Message(role=message.role, parts=tuple(part for group in groups for part in group)), []

    def _take_calls(self, message: Message, index: int) -> tuple[Message, list[_Slot]]:
        """Return slots for the calls of one step; a second call with the same id gets another id (known problem C7)."""
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        taken = {call.id for call in calls}
        slots_by_id: dict[str, deque[_Slot]] = {}
        slots: list[_Slot] = []
        for call in calls:
            twins = slots_by_id.setdefault(call.id, deque())
            slot = _Slot(self._rename(call, len(twins) + 1, taken, index) if twins else call)
            twins.append(slot)
            slots.append(slot)
        if len(slots) > len(slots_by_id):
            named = iter(slots)
            parts = (next(named).call if isinstance(part, ToolCall) else part for part in message.parts)
            message = Message(role=message.role, parts=tuple(parts))
        self._open_by_id.update(slots_by_id)
        return message, slots

    def _rename(self, call: ToolCall, number: int, taken: set[str], index: int) -> ToolCall:
        own = next(name for n in count(number) if (name := f"{call.id}-{n}") not in taken)
        taken.add(own)
        why = f"two calls have the id {call.id!r}; the second is {own!r} for Gemini"
        self._notes.append(Note("renamed", f"messages[{index}]", why))
        return msgspec.structs.replace(call, id=own)

    def _place(self, result: ToolResult, index: int) -> tuple[Part, ...]:
        """Assign a result to its call; return the parts to send instead if there is no such call."""
        waiting = self._open_by_id.get(result.call_id)
        where = f"messages[{index}]"
        if waiting is None:
            why = f"no tool call has the id {result.call_id!r}; its result is sent as text"
            self._notes.append(Note("repaired", where, why))
            said = [Text(text=result.response.decode())] if result.response else []
            heading = Text(text="Result of an earlier tool call:")
            return (heading, *said, *filter(_has_content, result.content))
        if not waiting:
            self._notes.append(Note("dropped", where, f"the call {result.call_id!r} was answered twice"))
            return ()
        slot = waiting.popleft()
        slot.result = msgspec.structs.replace(result, call_id=slot.call.id, name=slot.call.name)
        return ()

    def result_of(self, slot: _Slot, index: int) -> ToolResult:
        """Return the result of a call, or an error result if the client has lost it."""
        if slot.result is not None:
            return slot.result
        why = f"the call {slot.call.id!r} has no result; an error stands in for it"
        self._notes.append(Note("repaired", f"messages[{index}]", why))
        content = (Text(text=LOST_RESULT),)
        return ToolResult(call_id=slot.call.id, name=slot.call.name, content=content, is_error=True)


HISTORY_AS_TEXT = Note("moved", "messages", "Google refuses this history; its calls are told in words")


def history_as_text(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the messages with every call and result as text; no content is lost."""
    return tuple(Message(role=message.role, parts=_parts_as_text(message)) for message in messages)


def _parts_as_text(message: Message) -> tuple[Part, ...]:
    return tuple(told for part in message.parts for told in _part_as_text(part))


def _part_as_text(part: Part) -> tuple[Part, ...]:
    if isinstance(part, ToolCall):
        return (Text(text=f"[I called the tool {part.name} with {part.args.decode('utf-8', 'replace')}]"),)
    if isinstance(part, ToolResult):
        failed = " failed and" if part.is_error else ""
        head = Text(text=f"[The tool {part.name or 'of the call above'}{failed} answered:]")
        response = (Text(text=part.response.decode("utf-8", "replace")),) if part.response else ()
        return (head, *response, *part.content)
    return (part,)
