"""Items to messages: neighbours of one voice are one message, and the very same one with every turn."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import groupby

from dragoman.dialects.openai_responses.items import DecodedItem
from dragoman.ir import Message, Text, place_signatures

_VOICE, _SPEAKS = operator.attrgetter("voice"), operator.attrgetter("speaks")


def said(
    before: tuple[Message, ...], earlier: Sequence[DecodedItem], new: Sequence[DecodedItem]
) -> tuple[Message, ...]:
    """The messages of a conversation, which said `before` what the `earlier` items say, with the new items too."""
    last = _last_group(earlier)
    groups = groupby((*last, *filter(_SPEAKS, new)), key=_VOICE)
    return (*(before[:-1] if last else before), *[_message(tuple(group)) for _, group in groups])


def split_instructions(
    messages: tuple[Message, ...], *, always: bool
) -> tuple[Message | None, tuple[Message, ...]]:
    """What the developer says before anybody else is the system's; if it is all that is said, only where `always`."""
    if not messages or not _instructs(messages[0]) or (len(messages) == 1 and not always):
        return None, messages
    return messages[0], messages[1:]


def _instructs(message: Message) -> bool:
    return message.role == "system" and all(isinstance(part, Text) for part in message.parts)


def _last_group(items: Sequence[DecodedItem]) -> list[DecodedItem]:
    """Those that the last message is made of."""
    group: list[DecodedItem] = []
    for item in reversed(items):
        if item.speaks:
            if group and group[0].voice != item.voice:
                break
            group.insert(0, item)
    return group


def _message(group: tuple[DecodedItem, ...]) -> Message:
    """The first is left out of what is noted there: a circle would outlive its last user."""
    first, others = group[0], group[1:]
    noted: tuple[tuple[DecodedItem, ...], Message] | None = first.notebook.get("message")
    if noted is None or len(noted[0]) != len(others) or not all(map(operator.is_, noted[0], others)):
        noted = first.notebook["message"] = others, _join(group)
    return noted[1]


def _join(group: tuple[DecodedItem, ...]) -> Message:
    parts = [part for item in group for part in item.parts]
    sealed = [sealed for item in group for sealed in item.sealed]
    return Message(role=group[0].role, parts=place_signatures(parts, sealed))
