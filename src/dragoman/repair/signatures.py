"""Signatures from the store, for what the client did not bring back."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

import msgspec

from dragoman.ir import AFTER_TEXT, Message, Part, Sealed, Text, ToolCall, ToolResult

#: How keys of text begin. Words may be anybody's; the ids of calls are nobody else's.
TEXT_KEY = "text-"


def text_key(before: Message | None, text: str) -> str:
    """Text has no id: it is known by its words and by what the user had said or answered before."""
    digest = blake2b(digest_size=16)
    for part in before.parts if before is not None else ():
        if isinstance(part, ToolResult):
            digest.update(part.call_id.encode())
        elif isinstance(part, Text):
            digest.update(part.text.encode("utf-8", "replace"))
    digest.update(b"\0" + text.encode("utf-8", "replace"))
    return f"{TEXT_KEY}{digest.hexdigest()}"


def last_user(messages: tuple[Message, ...]) -> Message | None:
    return next((message for message in reversed(messages) if message.role == "user"), None)


def wanted_keys(messages: tuple[Message, ...]) -> dict[str, tuple[int, int]]:
    """What to ask the store for: key -> (message, part) without a signature of its own."""
    keys: dict[str, tuple[int, int]] = {}
    before: Message | None = None
    for index, message in enumerate(messages):
        if message.role == "user":
            before = message
        elif message.role == "model":
            for key, place in _keys(before, message):
                keys[key] = (index, place)
    return keys


def _keys(before: Message | None, message: Message) -> tuple[tuple[str, int], ...]:
    noted: tuple[Message | None, tuple[tuple[str, int], ...]] | None = message.notebook.get("keys")
    if noted is None or noted[0] is not before:
        found = ((_key(before, part), place) for place, part in enumerate(message.parts))
        noted = message.notebook["keys"] = before, tuple((key, place) for key, place in found if key)
    return noted[1]


def _key(before: Message | None, part: Part) -> str:
    if isinstance(part, ToolCall) and part.signature is None:
        return part.id
    if isinstance(part, Text) and part.signature is None and part.text:
        return text_key(before, part.text)
    return ""


def apply_signatures(
    messages: tuple[Message, ...], places: Mapping[str, tuple[int, int]], recalled: Mapping[str, Sealed]
) -> tuple[Message, ...]:
    """The messages with every recalled signature on its part."""
    if not recalled:
        return messages
    changed: dict[int, dict[int, Sealed]] = {}
    for key, sealed in recalled.items():
        if key in places:
            index, place = places[key]
            changed.setdefault(index, {})[place] = sealed
    return tuple(
        _signed(message, changed[index]) if index in changed else message
        for index, message in enumerate(messages)
    )


def _signed(message: Message, signatures: dict[int, Sealed]) -> Message:
    noted: tuple[dict[int, Sealed], Message] | None = message.notebook.get("signed")
    if noted is None or noted[0] != signatures:
        noted = message.notebook["signed"] = signatures, _sign(message, signatures)
    return noted[1]


def _sign(message: Message, signatures: Mapping[int, Sealed]) -> Message:
    parts: list[Part] = []
    for place, part in enumerate(message.parts):
        sealed = signatures.get(place)
        if sealed is None or not isinstance(part, Text | ToolCall):
            parts.append(part)
        elif sealed.target == AFTER_TEXT:
            parts += [part, Text(text="", signature=sealed.signature)]
        else:
            parts.append(msgspec.structs.replace(part, signature=sealed.signature))
    return Message(role=message.role, parts=tuple(parts))
