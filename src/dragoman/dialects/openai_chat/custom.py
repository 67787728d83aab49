"""Custom tools take plain text: Gemini gets a function with one string, the client gets its text back (pain G1)."""

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
    return _json({"input": text})


def unwrap(args: bytes) -> str:
    """The text of a call; arguments of another form are given as they are, so nothing is lost."""
    value: Any = msgspec.json.decode(args)
    text = value.get("input")
    return text if isinstance(text, str) else args.decode()


def describe(description: str, grammar: WireGrammar | None) -> str:
    """Gemini enforces no grammar: the model is told of it."""
    if grammar is None:
        return description
    rule = f"The input must fit this {grammar.syntax} grammar:\n{grammar.definition}"
    return f"{description}\n\n{rule}" if description else rule
