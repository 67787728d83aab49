"""What a service ran for the model, in a history: Google's own parts where it wants them back, words otherwise."""

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

#: A part that Google has a word for, or that is Google's word.
Sayable = Text | Thought | Media | ToolCall | ToolResult | Native

#: What they say of it; most messages have neither.
SERVED = frozenset({ServerCall, ServerResult})
_decode_own = msgspec.json.Decoder(list[dict[str, msgspec.Raw]]).decode


def say_served(parts: Iterable[Part], is_own: Callable[[Signature], bool]) -> Iterator[Sayable]:
    """The same parts without server calls and results; `is_own` says whether Google will know its words again."""
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
                yield Text(text=_tell(part.kind, calls.pop(part.call_id, None), part))
        else:
            yield part
    yield from (Text(text=_tell(call.kind, call, None)) for call in calls.values())


def _own_parts(signature: Signature) -> list[Native] | None:
    """The parts; of tools that ran together the first one has them all, and the others none."""
    try:
        return [Native(json=msgspec.json.encode(part)) for part in _decode_own(signature.data)]
    except msgspec.DecodeError:
        return None


def _tell(kind: ServerKind, call: ServerCall | None, result: ServerResult | None) -> str:
    asked = f": {_asked(call)}" if call is not None else ""
    told = (
        [*map(_found, result.sources), result.output, result.error] if result is not None else ["no result"]
    )
    return "\n".join([f"[{kind}{asked}]", *filter(None, told), ""])


def _asked(call: ServerCall) -> str:
    """The one thing it was asked for, or all its arguments."""
    args: dict[str, Any] = msgspec.json.decode(call.args)
    (subject,) = args.values() if len(args) == 1 else (None,)
    if isinstance(subject, list):
        subject = "; ".join(map(str, subject))
    words = subject if isinstance(subject, str) else call.args.decode()
    return " ".join(filter(None, (call.label, call.name if call.name != call.kind else "", words)))


def _found(source: Source) -> str:
    return " ".join(filter(None, (source.title, f"<{source.url}>", source.text, source.error)))
