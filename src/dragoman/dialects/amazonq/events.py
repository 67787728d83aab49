"""Neutral events to Amazon's, before they are framed."""

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
Told = list[tuple[Kind, bytes]]

#: Of the arguments' text in one event.
PIECE_CHARS = 4096
_json = msgspec.json.Encoder().encode


class AnswerEvents:
    """messageMetadata, then reasoning, text and tools as they come, contextUsage, metadata with the stop reason.

    Every tool is told without a break: one event that only opens it, pieces of its arguments, one that closes
    it. The Rust clients throw away what else the first event says, and take all that follows for this tool's.
    A client that asked for thinking gets one signature to keep, the first call's if there is one: it has room
    for no more. `codeReferenceEvent` makes those clients throw text away and is never sent.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._said = False
        self._thinking = False  # the last thing told was a thought
        self._carrier = ""  # a signature on its way to the client
        self._carried = not answer.with_thinking
        self._usage = Usage()

    def open(self) -> Told:
        echo: Echo = self._answer.echo or Echo()
        conversation = echo.conversation_id or self._answer.id
        return _told("messageMetadataEvent", {"conversationId": conversation, "utteranceId": self._answer.id})

    def feed(self, event: Event) -> Told:
        match event:
            case TextDelta() | Cited():
                return self._text(event.text)
            case ThoughtDelta():
                return self._thought(event.text)
            case ToolCall():
                return self._tool(event)
            case Signed():
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

    def _text(self, text: str) -> Told:
        if not text:
            return []
        self._said, self._thinking = True, False
        return [("assistantResponseEvent", b'{"content":%b}' % _json(text))]

    def _thought(self, text: str) -> Told:
        self._thinking = True
        if not text or not self._answer.with_thinking:
            return []
        return [("reasoningContentEvent", b'{"text":%b}' % _json(text))]

    def _sign(self, event: Signed) -> None:
        """On a thought, or at the end of an answer that was nothing but thought; the store keeps the others."""
        if event.target == ON_THOUGHT:
            self._carrier = seal(event.signature, ON_THOUGHT)
        elif self._thinking:
            self._carrier = seal(event.signature, AFTER_TEXT)

    def _carry(self) -> Told:
        if self._carried or not self._carrier:
            return []
        self._carried = True
        return _told("reasoningContentEvent", {"signature": self._carrier})

    def _tool(self, call: ToolCall) -> Told:
        if call.signature is not None:
            self._carrier = seal(call.signature, call.id)
        self._said, self._thinking = True, False
        use, text = {"toolUseId": call.id, "name": call.name}, call.args.decode()
        pieces = [
            {**use, "input": text[start : start + PIECE_CHARS]} for start in range(0, len(text), PIECE_CHARS)
        ]
        told = (use, *pieces, {**use, "stop": True})
        return [*self._carry(), *[("toolUseEvent", _json(one)) for one in told]]

    def _finish(self, finished: Finished) -> Told:
        words = "" if self._said else explanation(finished)
        fill = context_usage(self._usage, self._answer)
        return [
            *self._text(words),
            *self._carry(),
            *(_told("contextUsageEvent", fill) if fill is not None else []),
            *_told("metadataEvent", metadata(finished, self._usage, self._answer)),
        ]


def _told(kind: Kind, payload: Mapping[str, Any]) -> Told:
    return [(kind, _json(payload))]
