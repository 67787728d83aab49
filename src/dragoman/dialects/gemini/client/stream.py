"""Events to Gemini's two streams: server-sent events, or one JSON array."""

from __future__ import annotations

from typing import Any, assert_never

import msgspec

from dragoman.dialects.base import Answer
from dragoman.dialects.gemini.client.encode import Ending, call_part, envelope, signed
from dragoman.dialects.gemini.client.errors import error_body
from dragoman.errors import DragomanError
from dragoman.ir import (
    ON_THOUGHT,
    Cited,
    Event,
    Failed,
    Finished,
    Native,
    ServerCall,
    ServerResult,
    Signed,
    Started,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    Usage,
)

_json = msgspec.json.Encoder().encode


class SseStream:
    """One chunk per event that says something; the last one has the finish reason, the counts and the rest."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._started = Started()
        self._response_id = ""  # once a chunk has told one, it is the one
        self._fields: dict[str, msgspec.Raw] = {}
        self._usage = Usage()

    def open(self) -> bytes:
        return b""

    def ping(self) -> bytes:
        """A chunk that adds nothing: Google's libraries stumble over comments."""
        return self._part({"text": ""})

    def feed(self, event: Event) -> bytes:
        match event:
            case TextDelta() | Cited():
                return self._part({"text": event.text})
            case ThoughtDelta():
                return self._part({"text": event.text, "thought": True})
            case ToolCall():
                return self._part(call_part(event))
            case Signed():
                thought = {"thought": True} if event.target == ON_THOUGHT else {}
                return self._part(signed({"text": "", **thought}, event.signature))
            case Native() if not event.field:
                return self._part(msgspec.Raw(event.json))
            case Finished():
                return self._finish(event)
            case Failed():
                return self.fail(event.error)
            case _:
                self._learn(event)
                return b""

    def _learn(self, event: Native | Usage | Started | ServerCall | ServerResult) -> None:
        """What is told later, at the end."""
        match event:
            case Native():
                self._fields[event.field] = msgspec.Raw(event.json)
            case Usage():
                self._usage = event
            case Started():
                self._started = event
            case ServerCall() | ServerResult():
                pass  # what Google itself ran is told in its own parts
            case _:
                assert_never(event)

    def fail(self, error: DragomanError) -> bytes:
        return self._frame(error_body(error))

    def _finish(self, finished: Finished) -> bytes:
        parts = [] if finished.reason == "blocked" else [{"text": ""}]
        return self._chunk(parts, Ending(self._fields, self._usage, finished))

    def _part(self, part: Any) -> bytes:
        return self._chunk([part])

    def _chunk(self, parts: list[Any], ending: Ending | None = None) -> bytes:
        started = self._started
        self._response_id = self._response_id or started.response_id or self._answer.id
        return self._frame(_json(envelope(parts, self._answer, started.model, self._response_id, ending)))

    def _frame(self, document: bytes) -> bytes:
        if b"\n" in document or b"\r" in document:  # arguments stay as they came, over several lines too
            document = msgspec.json.format(document, indent=-1)
        return b"data: %b\r\n\r\n" % document


class ArrayStream(SseStream):
    """`[{…}`, then `,\\r\\n{…}` each, then `]`."""

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
