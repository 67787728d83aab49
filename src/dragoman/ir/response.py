"""A whole answer: `collect` builds it from events, `replay` turns it back into events."""

from __future__ import annotations

import msgspec

from dragoman.ir.events import Finished, Usage
from dragoman.ir.parts import Native, ServerCall, ServerResult, Text, Thought, ToolCall

AnswerPart = Text | Thought | ToolCall | ServerCall | ServerResult | Native


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """A whole answer; `native` are the response fields that only the Gemini dialect can express."""

    parts: tuple[AnswerPart, ...] = ()
    usage: Usage = Usage()
    finished: Finished = Finished(reason="other")
    model: str = ""
    response_id: str = ""
    native: tuple[Native, ...] = ()
