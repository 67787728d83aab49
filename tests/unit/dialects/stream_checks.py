"""Events that every dialect dresses, and the ways through its stream machine and through the collector."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dragoman.dialects.base import Answer, ClientDialect
from dragoman.ir import Event, Finished, Signature, Started, ToolCall, Usage, collect

SIGNATURE = Signature("c2ln", "gemini-g3")
OTHER = Signature("b3RoZXI", "gemini-g3")
END = Finished(reason="end", raw="STOP")
CALLED = Finished(reason="tool_calls", raw="STOP")
USAGE = Usage(input_tokens=100, cached_tokens=60, output_tokens=9, thought_tokens=4)


def call(
    identity: str, signature: Signature | None = None, args: bytes = b'{"a":1}', name: str = "Read"
) -> list[Event]:
    return [ToolCall(id=identity, name=name, args=args, signature=signature)]


def whole_stream(
    middle: Iterable[Event], finished: Finished = END, usage: Usage | None = None
) -> list[Event]:
    return [Started("gemini-x", "r"), *middle, *([usage] if usage is not None else []), finished]


def streamed_bytes(dialect: ClientDialect, events: Iterable[Event], answer: Answer) -> bytes:
    stream = dialect.stream(answer)
    return stream.open() + b"".join(map(stream.feed, events))


def whole_bytes(dialect: ClientDialect, events: Sequence[Event], answer: Answer) -> bytes:
    return dialect.encode_response(collect(list(events)), answer)
