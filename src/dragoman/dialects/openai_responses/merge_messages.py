"""Merge items to messages.

Neighbouring items with the same `Voice` become one message. The same items give the same `Message` object with every
turn, so that values cached on the message are found again.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import groupby

from dragoman.dialects.openai_responses.items import DecodedItem
from dragoman.incremental.fold import derive
from dragoman.ir import Message, Text, place_signatures

_VOICE, _SPEAKS = operator.attrgetter("voice"), operator.attrgetter("speaks")


def merge_items(
    before: tuple[Message, ...], earlier: Sequence[DecodedItem], new: Sequence[DecodedItem]
) -> tuple[Message, ...]:
    """Return the messages of the `earlier` and the `new` items; `before` are those of the earlier items.

    The last message of `before` is built again, because new items may belong to it.
    """
    last = _last_group(earlier)
    groups = groupby((*last, *filter(_SPEAKS, new)), key=_VOICE)
    return (*(before[:-1] if last else before), *[_message(tuple(group)) for _, group in groups])


def split_instructions(
    messages: tuple[Message, ...], *, always: bool
) -> tuple[Message | None, tuple[Message, ...]]:
    """Split a leading system message, which belongs to the system prompt, from the other messages.

    If there is no other message, it is split only if `always` is set.
    """
    if not messages or not _instructs(messages[0]) or (len(messages) == 1 and not always):
        return None, messages
    return messages[0], messages[1:]


def _instructs(message: Message) -> bool:
    return message.role == "system" and all(isinstance(part, Text) for part in message.parts)


def _last_group(items: Sequence[DecodedItem]) -> list[DecodedItem]:
    """Return the items of the last message."""
    group: list[DecodedItem] = []
    for item in reversed(items):
        if item.speaks:
            if group and group[0].voice != item.voice:
                break
            group.insert(0, item)
    return group


def _message(group: tuple[DecodedItem, ...]) -> Message:
    """Return the message of a group: the same object for the same items."""
    return derive(group[0], "message", group[1:], _join, group)


def _join(group: tuple[DecodedItem, ...]) -> Message:
    parts = [part for item in group for part in item.parts]
    sealed = [sealed for item in group for sealed in item.sealed]
    return Message(role=group[0].role, parts=place_signatures(parts, sealed))
