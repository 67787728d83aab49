"""Encode neutral events as Amazon's events, before they are framed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, assert_never

import msgspec

from dragoman.dialects.amazonq.decode import Echo
from dragoman.dialects.amazonq.ending import context_usage, explanation, metadata
from dragoman.dialects.base import Answer
from dragoman.ir import (
    AFTER_TEXT,
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
    seal,
)

Kind = Literal[
    "messageMetadataEvent",
    "assistantResponseEvent",
    "reasoningContentEvent",
    "toolUseEvent",
    "contextUsageEvent",
    "metadataEvent",
]
EncodedEvents = list[tuple[Kind, bytes]]

#: Maximum number of characters of a tool's arguments in one event.
PIECE_CHARS = 4096
_json = msgspec.json.Encoder().encode


class AnswerEvents:
    """Emits messageMetadata, then reasoning, text and tools in order, contextUsage, metadata with the stop reason.

    The events of a tool are consecutive: one that only opens it, pieces of its arguments, one that closes it.
    The Rust clients discard other data in the first event and attribute all following events to this tool.
    A client that asked for thinking gets one signature, because it can keep only one: that of the first call
    if there is a call. `codeReferenceEvent` makes the Rust clients discard text, so it is never sent.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._has_content = False
        self._thinking = False  # the last event was a thought
        self._sealed = ""  # the sealed signature to send
        self._signature_sent = not answer.with_thinking
        self._usage = Usage()

    def open(self) -> EncodedEvents:
        echo: Echo = self._answer.echo or Echo()
        conversation = echo.conversation_id or self._answer.id
        return _event(
            "messageMetadataEvent", {"conversationId": conversation, "utteranceId": self._answer.id}
        )

    def feed(self, event: Event) -> EncodedEvents:
        match event:
            case TextDelta() | CitedText():
                return self._text(event.text)
            case ThoughtDelta():
                return self._thought(event.text)
            case ToolCall():
                return self._tool(event)
            case SignatureDelta():
                self._sign(event)
                return []
            case Usage():
                self._usage = event
                return []
            case Finished():
                return self._finish(event)
            case Started() | Native() | ServerCall() | ServerResult() | Failed():
                return []
            case _:
                assert_never(event)

    def _text(self, text: str) -> EncodedEvents:
        if not text:
            return []
        self._has_content, self._thinking = True, False
        return [("assistantResponseEvent", b'{"content":%b}' % _json(text))]

    def _thought(self, text: str) -> EncodedEvents:
        self._thinking = True
        if not text or not self._answer.with_thinking:
            return []
        return [("reasoningContentEvent", b'{"text":%b}' % _json(text))]

    def _sign(self, event: SignatureDelta) -> None:
        """Keep the signature of a thought, or of an answer that ends with a thought; the store has all others."""
        if event.target == ON_THOUGHT:
            self._sealed = seal(event.signature, ON_THOUGHT)
        elif self._thinking:
            self._sealed = seal(event.signature, AFTER_TEXT)

    def _signature(self) -> EncodedEvents:
        """Emit the signature, once."""
        if self._signature_sent or not self._sealed:
            return []
        self._signature_sent = True
        return _event("reasoningContentEvent", {"signature": self._sealed})

    def _tool(self, call: ToolCall) -> EncodedEvents:
        if call.signature is not None:
            self._sealed = seal(call.signature, call.id)
        self._has_content, self._thinking = True, False
        use, text = {"toolUseId": call.id, "name": call.name}, call.args.decode()
        pieces = [
            {**use, "input": text[start : start + PIECE_CHARS]} for start in range(0, len(text), PIECE_CHARS)
        ]
        events = (use, *pieces, {**use, "stop": True})
        return [*self._signature(), *[("toolUseEvent", _json(one)) for one in events]]

    def _finish(self, finished: Finished) -> EncodedEvents:
        text = "" if self._has_content else explanation(finished)
        fill = context_usage(self._usage, self._answer)
        return [
            *self._text(text),
            *self._signature(),
            *(_event("contextUsageEvent", fill) if fill is not None else []),
            *_event("metadataEvent", metadata(finished, self._usage, self._answer)),
        ]


def _event(kind: Kind, payload: Mapping[str, Any]) -> EncodedEvents:
    return [(kind, _json(payload))]
