"""Encode events as Gemini's two kinds of streams: server-sent events, or one JSON array."""

from __future__ import annotations

from typing import Any, assert_never

import msgspec

from dragoman.dialects.base import Answer
from dragoman.dialects.gemini.client.encode import LastChunk, call_part, envelope, signed
from dragoman.dialects.gemini.client.errors import error_body
from dragoman.errors import DragomanError
from dragoman.ir import (
    ON_THOUGHT,
    CitedText,
    Event,
    Failed,
    Finished,
    Native,
    ServerCall,
    ServerResult,
    SignatureDelta,
    Started,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    Usage,
)

_json = msgspec.json.Encoder().encode


class SseStream:
    """Encodes one chunk for each event with content.

    The last chunk has the finish reason, the token counts and the native fields.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._started = Started()
        self._response_id = ""  # all chunks repeat the id of the first
        self._fields: dict[str, msgspec.Raw] = {}
        self._usage = Usage()

    def open(self) -> bytes:
        return b""

    def ping(self) -> bytes:
        """Return a chunk with an empty text: Google's libraries fail on SSE comments."""
        return self._part({"text": ""})

    def feed(self, event: Event) -> bytes:
        match event:
            case TextDelta() | CitedText():
                return self._part({"text": event.text})
            case ThoughtDelta():
                return self._part({"text": event.text, "thought": True})
            case ToolCall():
                return self._part(call_part(event))
            case SignatureDelta():
                thought = {"thought": True} if event.target == ON_THOUGHT else {}
                return self._part(signed({"text": "", **thought}, event.signature))
            case Native() if not event.field:
                return self._part(msgspec.Raw(event.json))
            case Finished():
                return self._finish(event)
            case Failed():
                return self.fail(event.error)
            case _:
                self._store(event)
                return b""

    def _store(self, event: Native | Usage | Started | ServerCall | ServerResult) -> None:
        """Store the values that the last chunk reports."""
        match event:
            case Native():
                self._fields[event.field] = msgspec.Raw(event.json)
            case Usage():
                self._usage = event
            case Started():
                self._started = event
            case ServerCall() | ServerResult():
                pass  # native parts report them
            case _:
                assert_never(event)

    def fail(self, error: DragomanError) -> bytes:
        return self._frame(error_body(error))

    def _finish(self, finished: Finished) -> bytes:
        parts = [] if finished.reason == "blocked" else [{"text": ""}]
        return self._chunk(parts, LastChunk(self._fields, self._usage, finished))

    def _part(self, part: Any) -> bytes:
        return self._chunk([part])

    def _chunk(self, parts: list[Any], ending: LastChunk | None = None) -> bytes:
        started = self._started
        self._response_id = self._response_id or started.response_id or self._answer.id
        return self._frame(_json(envelope(parts, self._answer, started.model, self._response_id, ending)))

    def _frame(self, document: bytes) -> bytes:
        if b"\n" in document or b"\r" in document:  # raw arguments may be pretty-printed
            document = msgspec.json.format(document, indent=-1)
        return b"data: %b\r\n\r\n" % document


class ArrayStream(SseStream):
    """A JSON array: `[{…}`, then `,\\r\\n{…}` for every further chunk, then `]`."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer)
        self._begun = False

    def fail(self, error: DragomanError) -> bytes:
        return super().fail(error) + b"]"

    def _finish(self, finished: Finished) -> bytes:
        return super()._finish(finished) + b"]"

    def _frame(self, document: bytes) -> bytes:
        begun, self._begun = self._begun, True
        return (b",\r\n" if begun else b"[") + document
