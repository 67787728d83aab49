"""The events of a streamed answer.

The legal order, checked by `ir.grammar`:

    stream  = Started item* Finished
    item    = TextDelta | Cited | ThoughtDelta | Signed | ToolCall | served | Native | Usage
    served  = ServerCall item* ServerResult             with the same id, and before `Finished`

`Failed` ends a stream at any point, even before `Started`. A `ToolCall` is emitted once its arguments are complete.
`Signed` applies to the part that its target names. `Usage` is a snapshot: the last one counts. A `Cited` continues
the current text, as a `TextDelta` does.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman.errors import DragomanError
from dragoman.ir.parts import Native, ServerCall, ServerResult, Source, ToolCall
from dragoman.ir.signature import Signature

StopReason = Literal["end", "tool_calls", "max_tokens", "blocked", "malformed", "other"]


class Started(msgspec.Struct, frozen=True, gc=False):
    """The upstream started to answer; `model` is the model version that it reports."""

    model: str = ""
    response_id: str = ""


class TextDelta(msgspec.Struct, frozen=True, gc=False):
    text: str


class CitedText(msgspec.Struct, frozen=True, gc=False):
    """A piece of text with the sources that support it."""

    text: str
    sources: tuple[Source, ...]


class ThoughtDelta(msgspec.Struct, frozen=True, gc=False):
    text: str


class SignatureDelta(msgspec.Struct, frozen=True, gc=False):
    """A signature of a text or thought; `target` is `ON_TEXT`, `AFTER_TEXT` or `ON_THOUGHT` of `ir.signature`."""

    signature: Signature
    target: str


class Usage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Token counts: `input_tokens` includes `cached_tokens`, `output_tokens` includes `thought_tokens`.

    `searches` and `fetches` count the server-side web searches and fetched pages.
    """

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    thought_tokens: int = 0
    searches: int = 0
    fetches: int = 0

    def plus(self, other: Usage) -> Usage:
        names = self.__struct_fields__
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in names})


class Finished(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The end of the answer. `raw` is the vendor's finish reason, `detail` its explanation."""

    reason: StopReason
    raw: str = ""
    detail: str = ""


class Failed(msgspec.Struct, frozen=True):
    error: DragomanError


Event = (
    Started
    | TextDelta
    | CitedText
    | ThoughtDelta
    | SignatureDelta
    | ToolCall
    | ServerCall
    | ServerResult
    | Native
    | Usage
    | Finished
    | Failed
)
