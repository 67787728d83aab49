"""What a model says, piece by piece.

The legal order, checked by `ir.grammar`:

    stream  = Started item* Finished
    item    = TextDelta | Cited | ThoughtDelta | Signed | ToolCall | served | Native | Usage
    served  = ServerCall item* ServerResult             of the same id; each is answered before `Finished`

`Failed` ends a stream at any point, even before `Started`. A call is told when it is whole.
`Signed` belongs to the part its target names; `Usage` is a snapshot, the last one counts. A `Cited` piece goes on
with the text before it as a `TextDelta` does.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman.errors import DragomanError
from dragoman.ir.parts import Native, ServerCall, ServerResult, Source, ToolCall
from dragoman.ir.signature import Signature

StopReason = Literal["end", "tool_calls", "max_tokens", "blocked", "malformed", "other"]


class Started(msgspec.Struct, frozen=True, gc=False):
    """The upstream began to answer; `model` is what really runs."""

    model: str = ""
    response_id: str = ""


class TextDelta(msgspec.Struct, frozen=True, gc=False):
    text: str


class Cited(msgspec.Struct, frozen=True, gc=False):
    """A piece of text that rests on these sources."""

    text: str
    sources: tuple[Source, ...]


class ThoughtDelta(msgspec.Struct, frozen=True, gc=False):
    text: str


class Signed(msgspec.Struct, frozen=True, gc=False):
    """A signature on text or thought: target is one of `signature.ON_TEXT`, `AFTER_TEXT`, `ON_THOUGHT`."""

    signature: Signature
    target: str


class Usage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`input_tokens` includes the cached ones; `output_tokens` includes the thoughts.

    `searches` and `fetches` count what the service looked up and read for the model.
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
    """The end. `raw` is the vendor's own word for it, `detail` its explanation."""

    reason: StopReason
    raw: str = ""
    detail: str = ""


class Failed(msgspec.Struct, frozen=True):
    error: DragomanError


Event = (
    Started
    | TextDelta
    | Cited
    | ThoughtDelta
    | Signed
    | ToolCall
    | ServerCall
    | ServerResult
    | Native
    | Usage
    | Finished
    | Failed
)
