"""Parse docstrings in Google, NumPy or reST style into a description and parameter descriptions."""

from __future__ import annotations

import inspect

import msgspec


class ParsedDocstring(msgspec.Struct, frozen=True):
    """The description of a tool and of its parameters by name."""

    description: str = ""
    parameters: dict[str, str] = {}


def parse_docstring(text: str | None) -> ParsedDocstring:
    """Return the text before the sections, and the description of each parameter as one line."""
    from docstring_parser import ParseError, parse  # imported here: only tools from functions need it

    if not text or not text.strip():
        return ParsedDocstring()
    try:
        found = parse(text)
    except ParseError:  # a malformed section: use the whole text
        return ParsedDocstring(inspect.cleandoc(text))
    words = [found.short_description or "", found.long_description or ""]
    parameters = {one.arg_name: " ".join((one.description or "").split()) for one in found.params}
    return ParsedDocstring("\n\n".join(filter(None, words)), parameters)
