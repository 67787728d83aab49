"""The searchable text of a tool (name, description, arguments) and how it is split into words."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from dragoman.incremental.lru import LruCache
from dragoman.ir import Tool
from dragoman.schema.walk import children

_MAX_ARGUMENTS = 200
_MAX_LINE = 4_000

_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[^\W\d])(?=\d)|(?<=\d)(?=[^\W\d])")
_GROUP = re.compile(r"__|[./:]")
_STOP = frozenset(
    "a all an and any are as at be by can for from has have i if in into is it its me my need of on or that the this"
    " to tool use using want when which will with you your".split()
)


class ToolDocument(msgspec.Struct, frozen=True):
    """The searchable text of one tool, without line breaks; an argument is its name and description."""

    name: str
    description: str
    arguments: tuple[str, ...]


#: Cached because every turn of a conversation has the same tools.
_DOCUMENTS: LruCache[tuple[str, str, bytes], ToolDocument] = LruCache(16 * 1024 * 1024, "found entries")


def document_of(tool: Tool) -> ToolDocument:
    key = (tool.name, tool.description, tool.schema)
    weight = 2 * (len(tool.name) + len(tool.description) + len(tool.schema))
    return _DOCUMENTS.get(key, weight, lambda: _make_document(tool))


def words_of(text: str) -> list[str]:
    """Split a text into lower-case words in the singular, without stop words; split camelCase and snake_case."""
    pieces = (piece for word in _WORD.findall(text) for piece in _CAMEL.split(word))
    return [_singular(word) for piece in pieces if (word := piece.lower()) not in _STOP]


def bare_name(name: str) -> str:
    """Return the name without its server or namespace prefix."""
    return _GROUP.split(name)[-1] or name


def _make_document(tool: Tool) -> ToolDocument:
    try:
        schema = msgspec.json.decode(tool.schema)
    except (msgspec.DecodeError, RecursionError):
        schema = None
    return ToolDocument(_line(tool.name), _line(tool.description), _arguments(schema))


def _arguments(schema: Any) -> tuple[str, ...]:
    lines: list[str] = []
    queue = [schema]
    for node in queue:
        if not isinstance(node, dict):
            continue
        for path, child in children(node):
            if path[0] == "properties":
                described = child.get("description") if isinstance(child, dict) else None
                lines.append(_line(f"{path[1]} {described if isinstance(described, str) else ''}"))
                if len(lines) == _MAX_ARGUMENTS:
                    return tuple(lines)
            queue.append(child)
    return tuple(lines)


def _line(text: str) -> str:
    return " ".join(text.split())[:_MAX_LINE]


def _singular(word: str) -> str:
    """Return a rough singular, so that `issues` matches `issue` and `queries` matches `query`."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word
