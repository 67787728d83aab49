"""Put signatures that the client sent back onto the parts that they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from dragoman.ir.parts import Part, ServerCall, Text, ToolCall
from dragoman.ir.signature import AFTER_TEXT, SealedSignature


def place_signatures(parts: Sequence[Part], sealed: Iterable[SealedSignature]) -> tuple[Part, ...]:
    """Return the parts with each signature on the call with its target id, or after the text for `AFTER_TEXT`.

    A signature whose call is missing is dropped.
    """
    by_target = {item.target: item.signature for item in sealed}
    if not by_target:
        return tuple(parts)
    placed = [
        msgspec.structs.replace(part, signature=by_target[part.id])
        if isinstance(part, _SIGNED_CALLS) and part.id in by_target
        else part
        for part in parts
    ]
    if AFTER_TEXT in by_target:
        placed.append(Text(text="", signature=by_target[AFTER_TEXT]))
    return tuple(placed)


_SIGNED_CALLS = (ToolCall, ServerCall)
