"""Encode server tool calls and results of a history.

They become Google's original parts if the upstream accepts them, and text otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from dragoman.ir import (
    Media,
    Native,
    Part,
    ServerCall,
    ServerKind,
    ServerResult,
    Signature,
    Source,
    Text,
    Thought,
    ToolCall,
    ToolResult,
)

#: A part that Gemini can represent.
EncodablePart = Text | Thought | Media | ToolCall | ToolResult | Native

#: Parts that `say_served` replaces; most messages contain neither.
SERVER_TOOL_PARTS = frozenset({ServerCall, ServerResult})
_decode_own = msgspec.json.Decoder(list[dict[str, msgspec.Raw]]).decode


def encode_server_tools(
    parts: Iterable[Part], is_own: Callable[[Signature], bool]
) -> Iterator[EncodablePart]:
    """Yield the parts with server calls and results replaced by Google's own parts or by text.

    `is_own` decides by the signature of a call whether Google accepts the original parts.
    """
    calls: dict[str, ServerCall] = {}
    replayed: set[str] = set()
    for part in parts:
        if isinstance(part, ServerCall):
            own = (
                _own_parts(part.signature) if part.signature is not None and is_own(part.signature) else None
            )
            if own is None:
                calls[part.id] = part
            else:
                replayed.add(part.id)
                yield from own
        elif isinstance(part, ServerResult):
            if part.call_id not in replayed:
                yield Text(text=_as_text(part.kind, calls.pop(part.call_id, None), part))
        else:
            yield part
    yield from (Text(text=_as_text(call.kind, call, None)) for call in calls.values())


def _own_parts(signature: Signature) -> list[Native] | None:
    """Return the original parts, or None if the signature cannot be decoded.

    The first of several parallel calls has the parts of all; the others have an empty list.
    """
    try:
        return [Native(json=msgspec.json.encode(part)) for part in _decode_own(signature.data)]
    except msgspec.DecodeError:
        return None


def _as_text(kind: ServerKind, call: ServerCall | None, result: ServerResult | None) -> str:
    detail = f": {_describe_call(call)}" if call is not None else ""
    lines = (
        [*map(_describe_source, result.sources), result.output, result.error]
        if result is not None
        else ["no result"]
    )
    return "\n".join([f"[{kind}{detail}]", *filter(None, lines), ""])


def _describe_call(call: ServerCall) -> str:
    """Return the label and name of a call, and its only argument or all arguments as JSON."""
    args: dict[str, Any] = msgspec.json.decode(call.args)
    (subject,) = args.values() if len(args) == 1 else (None,)
    if isinstance(subject, list):
        subject = "; ".join(map(str, subject))
    arguments = subject if isinstance(subject, str) else call.args.decode()
    return " ".join(filter(None, (call.label, call.name if call.name != call.kind else "", arguments)))


def _describe_source(source: Source) -> str:
    return " ".join(filter(None, (source.title, f"<{source.url}>", source.text, source.error)))
