"""What the program knows besides the words: the machine, the editor, the shell; told to the model when it changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.dialects.amazonq.wire import Object
from dragoman.ir import Message, Text
from dragoman.memo import Memo
from dragoman.notes import Note

#: Name and JSON text, without what is empty.
States = tuple[tuple[str, str], ...]

#: Members of a message's context that are read elsewhere.
_READ = frozenset({"tools", "toolResults"})
#: Members that mean nothing to a model.
_NOISE = {"userSettings": "settings of the program mean nothing to a model"}
_EMPTY: tuple[Any, ...] = (None, "", [], {})

#: The same states in the same place are the same message, so that it is encoded once.
_REMARKS: Memo[States, Message] = Memo(16 * 1024 * 1024, "amazonq remarks")


def decode_states(context: Object, where: str, notes: list[Note]) -> States:
    """Everything the context says; new members too, because a model reads what we do not know."""
    states: list[tuple[str, str]] = []
    for name, raw in context.items():
        if name in _READ:
            continue
        value = jsontext.decode(_decode_said, raw, f"{where}.{name}")
        if value in _EMPTY:
            continue
        if name in _NOISE:
            notes.append(Note("dropped", f"{where}.{name}", _NOISE[name]))
        else:
            states.append((name, msgspec.json.encode(value).decode()))
    return tuple(states)


def remark_on(states: States, told: Mapping[str, str]) -> tuple[Message, ...]:
    """A remark of the program on what is not as it was told before."""
    news = tuple(state for state in states if told.get(state[0]) != state[1])
    if not news:
        return ()
    weight = sum(len(name) + 4 * len(text) for name, text in news)
    return (_REMARKS.get(news, weight, lambda: _remark(news)),)


def _remark(news: States) -> Message:
    return Message(role="system", parts=(Text(text="\n".join(f"{name}: {text}" for name, text in news)),))


def _decode_said(raw: bytes | msgspec.Raw) -> Any:
    return _said(msgspec.json.decode(raw))


def _said(value: Any) -> Any:
    """Without the members that say nothing."""
    if isinstance(value, dict):
        said = {name: _said(item) for name, item in value.items()}
        return {name: item for name, item in said.items() if item not in _EMPTY}
    return [_said(item) for item in value] if isinstance(value, list) else value
