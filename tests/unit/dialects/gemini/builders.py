"""Builders: neutral requests in short, what becomes of them, and streams of Google's chunks."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any

from dragoman.dialects import gemini
from dragoman.dialects.base import Encoded, Target
from dragoman.dialects.gemini.stream import GeminiStream
from dragoman.ir import Event, Failed, Message, Part, Request, Signature, Text, Tool, ToolCall, ToolResult
from dragoman.notes import Note
from dragoman.schema import NameMap

Json = dict[str, Any]

NEW = "gemini-3.8-flash"
OLD = "gemini-2.5-flash"
OURS = Signature("c2lnbmVk", "gemini-g3")
SENTINEL = "skip_thought_signature_validator"
READ = Tool(
    name="read",
    description="Read a file.",
    schema=b'{"type":"object","properties":{"path":{"type":"string"}}}',
    where="tools[0]",
)


def user(*parts: Part | str) -> Message:
    return Message(role="user", parts=_parts(parts))


def model(*parts: Part | str) -> Message:
    return Message(role="model", parts=_parts(parts))


def remark(*parts: Part | str) -> Message:
    return Message(role="system", parts=_parts(parts))


def _parts(parts: Iterable[Part | str]) -> tuple[Part, ...]:
    return tuple(Text(text=part) if isinstance(part, str) else part for part in parts)


def call(number: int = 1, *, signature: Signature | None = None, name: str = "read") -> ToolCall:
    return ToolCall(id=f"toolu_{number}", name=name, args=b'{"path":"a"}', signature=signature)


def result(
    number: int = 1, *content: Text | str | Any, name: str = "read", is_error: bool = False
) -> ToolResult:
    parts = tuple(Text(text=part) if isinstance(part, str) else part for part in content)
    return ToolResult(call_id=f"toolu_{number}", content=parts, is_error=is_error, name=name)


def encode(
    *messages: Message, to: str = NEW, backend: str = "gemini", proto: bool = False, **fields: Any
) -> Encoded:
    request = Request(model="any", messages=messages or (user("hi"),), **fields)
    target = Target(model=to, backend=backend, proto_schemas=proto)
    return gemini.encode_request(request, target, lambda: "toolu_0000000000000000")


def body_of(*messages: Message, **options: Any) -> Json:
    found: Json = json.loads(encode(*messages, **options).body)
    return found


def contents_of(*messages: Message, **options: Any) -> list[Json]:
    found: list[Json] = body_of(*messages, **options)["contents"]
    return found


def notes_of(*messages: Message, **options: Any) -> tuple[Note, ...]:
    return encode(*messages, **options).notes


def config_of(**options: Any) -> Json:
    found: Json = body_of(**options).get("generationConfig", {})
    return found


def new_stream(names: Sequence[str] = ("read",), *, single_call: bool = False) -> GeminiStream:
    numbers = itertools.count(1)
    return GeminiStream(
        NameMap.of(names), "gemini-g3", lambda: f"toolu_{next(numbers):016d}", single_call=single_call
    )


def sse(*chunks: Any) -> bytes:
    return b"".join(b"data: %b\r\n\r\n" % json.dumps(chunk).encode() for chunk in chunks)


def array(*chunks: Any) -> bytes:
    return b"[" + b"\n,\r\n".join(json.dumps(chunk).encode() for chunk in chunks) + b"]"


def read(data: bytes, stream: GeminiStream | None = None, size: int = 0) -> list[Event]:
    """All events of `data`, fed in slices of `size` bytes (0: at once)."""
    reader = stream or new_stream()
    step = size or len(data) or 1
    events: list[Event] = []
    for start in range(0, len(data), step):
        events += reader.feed(data[start : start + step])
    return events + reader.close()


def comparable(events: Iterable[Event]) -> list[Any]:
    """Errors are compared by what they say."""
    return [
        (type(event.error), event.error.kind, event.error.message, event.error.retry_after_s)
        if isinstance(event, Failed)
        else event
        for event in events
    ]


def chunk(*parts: Json, finish: str | None = None, usage: Json | None = None, **rest: Any) -> Json:
    candidate: Json = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    found: Json = {"candidates": [candidate], "modelVersion": NEW, "responseId": "r1", **rest}
    return {**found, "usageMetadata": usage} if usage is not None else found


def calling(name: str | None = "read", signature: str | None = None, **fields: Any) -> Json:
    part: Json = {"functionCall": {**({"name": name} if name else {}), **fields}}
    return {**part, "thoughtSignature": signature} if signature else part
