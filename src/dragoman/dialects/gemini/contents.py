"""Encode messages as `contents`, incrementally.

A conversation repeats its history in every request. `fold` continues where the last request ended, so that only new
messages are encoded. Calls without a signature get Google's sentinel where one is required.
"""

from __future__ import annotations

import operator
from functools import partial

import msgspec

from dragoman.dialects.gemini.models import ModelProfile
from dragoman.dialects.gemini.parts import EncodingContext, PartEncoder, WirePart
from dragoman.incremental.fold import fold
from dragoman.ir import Media, Message, Part, Text, Thought, ToolResult
from dragoman.notes import Note

#: Google's documented value for a call that it did not sign; sent literally (known problems A6, A7).
SENTINEL = "skip_thought_signature_validator"

_ENCODER = msgspec.json.Encoder()
_NOT_SIGNED = "no signature is known for this call; Google's sentinel stands in for it"
_SENTINEL_MEMBER = _ENCODER.encode({"thoughtSignature": SENTINEL})[1:-1]


def encode_contents(
    messages: tuple[Message, ...], setting: EncodingContext
) -> tuple[list[bytes], list[Note]]:
    """Encode messages as `contents`; return the JSON of each content, and notes.

    The messages must be repaired: the results of each step directly follow its calls.
    """
    if not messages:
        return [], []
    states = fold(messages, "contents", _State(context=setting), partial(_add_message, PartEncoder(setting)))
    last = states[-1]
    special = last.content.special
    noted, unsigned = (last.notes, last.unsigned) if special is None else _add_special(special, last)
    contents = [*filter(None, (*map(_CLOSED, states), last.content.json))]
    notes = [*noted]
    for place, at in unsigned:
        notes.append(Note("sentinel", f"contents[{place}]", _NOT_SIGNED))
        json = contents[place]
        contents[place] = b"%b,%b%b" % (json[:at], _SENTINEL_MEMBER, json[at:])
    return contents, notes


class Special(msgspec.Struct, frozen=True, gc=False):
    """Properties that only some contents have.

    `unsigned` is the byte offset at which the signature of the first call can be inserted; 0 if none is missing.
    """

    unsigned: int
    starts_turn: bool
    notes: tuple[Note, ...]


class EncodedContent(msgspec.Struct, frozen=True):
    """One message as JSON, together with the system messages that follow it."""

    json: bytes
    special: Special | None


class _State(msgspec.Struct, frozen=True):
    """The contents after one message.

    The `content` of the message `head` is open: system messages that follow, the `system_messages` so far, become part
    of it. `closed` is the JSON of the content that this message has closed, if any. The other fields describe all
    closed contents: their `number`, their notes, and the place and byte offset of each missing signature in the current
    turn, where the first call of every step must have one (known problem A6). `context` is set in the start state only.
    """

    closed: bytes = b""
    content: EncodedContent = EncodedContent(b"", None)
    head: Message | None = None
    system_messages: tuple[Message, ...] = ()
    number: int = 0
    notes: tuple[Note, ...] = ()
    unsigned: tuple[tuple[int, int], ...] = ()
    context: EncodingContext | None = None


_CLOSED = operator.attrgetter("closed")


def _add_message(encoder: PartEncoder, before: _State, message: Message) -> _State:
    """Add a system message to the open content, or close that and begin another one.

    After a message of the model, a system message becomes a content of its own.
    """
    head = before.head
    if message.role == "system" and head is not None and head.role != "model":
        system_messages = (*before.system_messages, message)
        content = _encode(head, system_messages, encoder)
        return msgspec.structs.replace(before, closed=b"", content=content, system_messages=system_messages)
    content = _encode(message, (), encoder)
    if head is None:
        return _State(b"", content, Message(role=message.role, parts=message.parts))  # a copy, see `fold`
    json, number, special = before.content.json, before.number, before.content.special
    notes, unsigned = (before.notes, before.unsigned) if special is None else _add_special(special, before)
    return _State(json, content, message, (), number + 1 if json else number, notes, unsigned)


def _add_special(special: Special, before: _State) -> tuple[tuple[Note, ...], tuple[tuple[int, int], ...]]:
    """Return the notes and missing signatures of all contents, now that the open one with `special` is closed."""
    new = tuple(note for note in dict.fromkeys(special.notes) if note not in before.notes)
    unsigned = before.unsigned
    if special.starts_turn:
        unsigned = ()
    elif special.unsigned:
        unsigned = (*unsigned, (before.number, special.unsigned))
    return before.notes + new, unsigned


def _encode(message: Message, system_messages: tuple[Message, ...], encoder: PartEncoder) -> EncodedContent:
    """Encode a message with its system messages; the JSON is empty if no part is left."""
    role, source, notes = message.role, message.parts, encoder.notes
    notes.clear()
    if role == "system":
        role, kinds, parts = "user", set[type[Part]](), list[WirePart]()
        encoder.add_remark(parts, source)
    else:
        kinds = set(map(type, source))
        parts = encoder.encode(source, kinds)
    for following in system_messages:
        encoder.add_remark(parts, following.parts)
    if not parts:
        return EncodedContent(b"", None)
    json = _ENCODER.encode({"role": role, "parts": parts})
    unsigned = 0 if kinds <= _NO_CALLS else _find_unsigned(json, parts, encoder.setting.profile)
    starts_turn = role == "user" and "functionResponse" not in parts[0]
    special = Special(unsigned, starts_turn, tuple(notes)) if unsigned or starts_turn or notes else None
    return EncodedContent(json, special)


_NO_CALLS = frozenset({Text, Thought, Media, ToolResult})


def _find_unsigned(json: bytes, parts: list[WirePart], profile: ModelProfile) -> int:
    """Return the offset after the last member of the first call's part; 0 if it needs no signature or has one."""
    if not profile.signatures:
        return 0
    for index, part in enumerate(parts, 1):
        if "functionCall" in part:
            if "thoughtSignature" in part:
                return 0
            following = len(_ENCODER.encode(parts[index:])) - 1 if index < len(parts) else 0
            return len(json) - following - len(b"}]}")
    return 0
