"""Estimate token counts before Google has counted them: about four bytes of UTF-8 per token."""

from __future__ import annotations

import re
from typing import assert_never

from dragoman.incremental.fold import fold
from dragoman.incremental.lru import LruCache
from dragoman.ir import (
    Media,
    Message,
    Native,
    Part,
    Request,
    ServerCall,
    ServerResult,
    Text,
    Thought,
    Tool,
    ToolCall,
    ToolResult,
)

_BYTES_PER_TOKEN = 4
_TOKENS_PER_IMAGE = 1_120
_TOKENS_PER_PAGE = 560
_BASE64_CHARS_PER_PAGE = 60_000
_TOKENS_PER_MESSAGE = 4
_INLINE = re.compile(rb'"inline_?[dD]ata"')


#: Cached counts of system prompt and tools, which are the same in every turn and in many conversations.
_STANDING: LruCache[tuple[tuple[Text, ...], tuple[Tool, ...]], int] = LruCache(
    16 * 1024 * 1024, "standing tokens"
)


def estimate_tokens(request: Request) -> int:
    """Estimate the prompt's tokens; a file counts by its kind, not by its base64 (known problems H1, H2)."""
    key = request.system, request.tools
    standing = _STANDING.find(key)
    if standing is None:
        standing = sum(_text(part.text) for part in request.system) + sum(map(_tool, request.tools))
        _STANDING.put(key, 2 * _BYTES_PER_TOKEN * standing, standing)
    return max(1, standing + _history(request.messages))


def _history(messages: tuple[Message, ...]) -> int:
    totals = fold(messages, "tokens", 0, lambda total, message: total + _message(message))
    return totals[-1] if totals else 0


def _message(message: Message) -> int:
    return _TOKENS_PER_MESSAGE + sum(map(_part, message.parts))


def _part(part: Part) -> int:
    match part:
        case Text():
            return _text(part.text)
        case Thought():
            return 0  # never sent back
        case Media():
            return _media(part)
        case ToolCall():
            return len(part.args) // _BYTES_PER_TOKEN + _text(part.name)
        case ToolResult():
            size = len(part.response) // _BYTES_PER_TOKEN
            return _TOKENS_PER_MESSAGE + size + _native(part.native) + sum(map(_part, part.content))
        case ServerCall():
            return len(part.args) // _BYTES_PER_TOKEN + _text(part.name)
        case ServerResult():
            found = (_text(source.url) + _text(source.title) + _text(source.text) for source in part.sources)
            return _TOKENS_PER_MESSAGE + _text(part.output) + sum(found)
        case Native():
            return _native(part.json)
        case _:
            assert_never(part)


def _text(text: str) -> int:
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return -(-size // _BYTES_PER_TOKEN)


def _native(json: bytes) -> int:
    """Estimate Gemini-only content; inline data counts as an image."""
    return _TOKENS_PER_IMAGE if _INLINE.search(json) else len(json) // _BYTES_PER_TOKEN


def _media(media: Media) -> int:
    if media.mime == "application/pdf":
        return _TOKENS_PER_PAGE * (1 + len(media.data) // _BASE64_CHARS_PER_PAGE)
    return _TOKENS_PER_IMAGE


def _tool(tool: Tool) -> int:
    return _text(tool.name) + _text(tool.description) + len(tool.schema) // _BYTES_PER_TOKEN
