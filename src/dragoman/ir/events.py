"""What a model says, piece by piece.

The legal order, checked by `ir.grammar`:

    stream  = Started item* Finished
    item    = TextDelta | ThoughtDelta | Signed | call | Native | Usage
    call    = CallStarted CallDelta* CallEnded          never nested, never interleaved

`Failed` ends a stream at any point, even before `Started` or inside a call.
`Signed` belongs to the part its target names; `Usage` is a snapshot, the last one counts.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman.errors import DragomanError
from dragoman.ir.parts import Native
from dragoman.ir.signature import Signature

StopReason = Literal["end", "tool_calls", "max_tokens", "blocked", "malformed", "other"]


class Started(msgspec.Struct, frozen=True, gc=False):
    """The upstream began to answer; `model` is what really runs."""

    model: str = ""
    response_id: str = ""


class TextDelta(msgspec.Struct, frozen=True, gc=False):
    text: str


class ThoughtDelta(msgspec.Struct, frozen=True, gc=False):
    text: str


class CallStarted(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    signature: Signature | None = None


class CallDelta(msgspec.Struct, frozen=True, gc=False):
    """A piece of the arguments' JSON text."""

    json: bytes


class CallEnded(msgspec.Struct, frozen=True, gc=False):
    pass


class Signed(msgspec.Struct, frozen=True):
    """A signature on text or thought: target is one of `signature.ON_TEXT`, `AFTER_TEXT`, `ON_THOUGHT`."""

    signature: Signature
    target: str


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """`input_tokens` includes the cached ones; `output_tokens` includes the thoughts."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    thought_tokens: int = 0


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """The end. `raw` is the vendor's own word for it, `detail` its explanation."""

    reason: StopReason
    raw: str = ""
    detail: str = ""


class Failed(msgspec.Struct, frozen=True):
    error: DragomanError


Event = (
    Started
    | TextDelta
    | ThoughtDelta
    | CallStarted
    | CallDelta
    | CallEnded
    | Signed
    | Native
    | Usage
    | Finished
    | Failed
)
