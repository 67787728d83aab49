"""A whole answer: what `collect` makes of a stream, what `replay` turns back into one."""

from __future__ import annotations

import msgspec

from dragoman.ir.events import Finished, Usage
from dragoman.ir.parts import Native, ServerCall, ServerResult, Text, Thought, ToolCall

Said = Text | Thought | ToolCall | ServerCall | ServerResult | Native


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """`native` are the fields beside the parts that only Gemini's own dialect knows."""

    parts: tuple[Said, ...] = ()
    usage: Usage = Usage()
    finished: Finished = Finished(reason="other")
    model: str = ""
    response_id: str = ""
    native: tuple[Native, ...] = ()
