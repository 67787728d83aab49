"""The context that a client sends with every message: operating system, editor, shell.

The model gets it as a system message, but only the values that have changed since the last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.dialects.amazonq.wire import Object
from dragoman.incremental.lru import LruCache
from dragoman.ir import Message, Text
from dragoman.notes import Note

#: Pairs of a name and its value as JSON, without empty values.
EditorState = tuple[tuple[str, str], ...]

#: Members of a message's context that other modules decode.
_READ = frozenset({"tools", "toolResults"})
#: Members that are dropped, and why.
_DROPPED = {"userSettings": "settings of the program mean nothing to a model"}
_EMPTY: tuple[Any, ...] = (None, "", [], {})

#: Equal states give the same message object, so that its cached encoding is found again.
_MESSAGES: LruCache[EditorState, Message] = LruCache(16 * 1024 * 1024, "amazonq remarks")


def decode_editor_state(context: Object, where: str, notes: list[Note]) -> EditorState:
    """Return all members of the context, unknown ones too: the model may understand them."""
    states: list[tuple[str, str]] = []
    for name, raw in context.items():
        if name in _READ:
            continue
        value = jsontext.decode(_decode_value, raw, f"{where}.{name}")
        if value in _EMPTY:
            continue
        if name in _DROPPED:
            notes.append(Note("dropped", f"{where}.{name}", _DROPPED[name]))
        else:
            states.append((name, msgspec.json.encode(value).decode()))
    return tuple(states)


def editor_state_messages(states: EditorState, told: Mapping[str, str]) -> tuple[Message, ...]:
    """Return a system message with the states that differ from those in `told`, or nothing."""
    changed = tuple(state for state in states if told.get(state[0]) != state[1])
    if not changed:
        return ()
    weight = sum(len(name) + 4 * len(text) for name, text in changed)
    return (_MESSAGES.get(changed, weight, lambda: _make_message(changed)),)


def _make_message(changed: EditorState) -> Message:
    return Message(role="system", parts=(Text(text="\n".join(f"{name}: {text}" for name, text in changed)),))


def _decode_value(raw: bytes | msgspec.Raw) -> Any:
    return _without_empty(msgspec.json.decode(raw))


def _without_empty(value: Any) -> Any:
    """Return the value without empty members."""
    if isinstance(value, dict):
        members = {name: _without_empty(item) for name, item in value.items()}
        return {name: item for name, item in members.items() if item not in _EMPTY}
    return [_without_empty(item) for item in value] if isinstance(value, list) else value
