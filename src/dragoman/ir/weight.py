"""About how many bytes of memory a value holds, for caches that are bounded in bytes."""

from __future__ import annotations

from dragoman.ir.parts import Media, Text, Thought, ToolCall, ToolResult
from dragoman.ir.request import Message, Tool

_OBJECT = 200


def weigh(thing: object) -> int:
    match thing:
        case Message():
            return _OBJECT + sum(map(weigh, thing.parts))
        case Text() | Thought():
            return _OBJECT + len(thing.text)
        case Media():
            return _OBJECT + len(thing.data)
        case ToolCall():
            return _OBJECT + len(thing.args)
        case ToolResult():
            return _OBJECT + sum(map(weigh, thing.content))
        case Tool():
            return _OBJECT + len(thing.schema) + len(thing.description)
        case _:
            return _OBJECT
