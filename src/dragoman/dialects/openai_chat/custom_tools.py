"""Custom tools, which take plain text instead of JSON arguments.

Gemini has only functions, so a custom tool is declared as a function with one string argument, and the client gets
that string (known problem G1).
"""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.dialects.openai_chat.wire import WireGrammar

_json = msgspec.json.Encoder().encode

INPUT_SCHEMA = _json(
    {
        "type": "object",
        "properties": {"input": {"type": "string", "description": "The whole input, as plain text."}},
        "required": ["input"],
    }
)


def wrap(text: str) -> bytes:
    """Return the arguments of the function for the input of a custom tool."""
    return _json({"input": text})


def unwrap(args: bytes) -> str:
    """Return the input of a custom tool; arguments without an `input` string are returned as JSON text."""
    value: Any = msgspec.json.decode(args)
    text = value.get("input")
    return text if isinstance(text, str) else args.decode()


def describe(description: str, grammar: WireGrammar | None) -> str:
    """Return the description with the grammar appended, because Gemini cannot enforce it."""
    if grammar is None:
        return description
    rule = f"The input must fit this {grammar.syntax} grammar:\n{grammar.definition}"
    return f"{description}\n\n{rule}" if description else rule
