"""Encode events as Amazon's event stream.

`AnswerEvents` makes Amazon's events of neutral ones; `AssistantStream` frames them. A complete response is a JSON list
of the same events, because Amazon Q's own API only streams.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, assert_never, get_args

import msgspec

from dragoman.dialects.amazonq.decode import Echo
from dragoman.dialects.amazonq.errors import stream_error
from dragoman.dialects.base import Answer
from dragoman.errors import DragomanError
from dragoman.http.aws_eventstream import encode_event, encode_event_headers, encode_exception
from dragoman.ir import (
    AFTER_TEXT,
    ON_THOUGHT,
    CitedText,
    Event,
    Failed,
    Finished,
    Native,
    Response,
    ServerCall,
    ServerResult,
    SignatureDelta,
    Started,
    StopReason,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    Usage,
    replay,
    seal,
)

_STOP: dict[StopReason, str] = {
    "end": "END_TURN",
    "tool_calls": "TOOL_USE",
    "max_tokens": "MAX_TOKENS",
    "blocked": "CONTENT_FILTERED",
    "malformed": "UNKNOWN",
    "other": "END_TURN",
}
#: Reasons to explain in an answer without content: most clients ignore the stop reason and would show nothing.
_UNEXPECTED: frozenset[StopReason] = frozenset({"blocked", "max_tokens", "malformed"})


def explanation(finished: Finished) -> str:
    """Return a text that explains why an answer has no content; empty if the reason needs none."""
    return f"({_why(finished)})" if finished.reason in _UNEXPECTED else ""


def metadata(finished: Finished, usage: Usage, answer: Answer) -> dict[str, Any]:
    """Return the payload of `metadataEvent`; Amazon's input tokens exclude cached ones, Google's include them."""
    prompt = max(usage.input_tokens or answer.input_tokens, usage.cached_tokens)
    payload: dict[str, Any] = {
        "tokenUsage": {
            "uncachedInputTokens": prompt - usage.cached_tokens,
            "outputTokens": usage.output_tokens,
            "totalTokens": prompt + usage.output_tokens,
            "cacheReadInputTokens": usage.cached_tokens,
            "cacheWriteInputTokens": 0,
        },
        "stopReason": _STOP[finished.reason],
    }
    if finished.reason == "blocked":
        payload["stopDetails"] = {"refusal": {"explanation": _why(finished)}}
    return payload


def context_usage(usage: Usage, answer: Answer) -> dict[str, Any] | None:
    """Return the payload of `contextUsageEvent`; None if the token count or the context size is unknown."""
    if not usage.input_tokens or not answer.context_tokens:
        return None
    used = usage.input_tokens + usage.output_tokens - usage.thought_tokens
    return {"contextUsagePercentage": round(100 * used / answer.context_tokens, 2)}


def _why(finished: Finished) -> str:
    return finished.detail or f"Gemini stopped with {finished.raw}"


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


_HEADS: dict[Kind, bytes] = {kind: encode_event_headers(kind) for kind in get_args(Kind)}
_PING = encode_event(encode_event_headers("ping"), b"{}")


class AssistantStream:
    """Frames the events of `AnswerEvents`; a failure is an exception, because a plain end looks like success."""

    def __init__(self, answer: Answer) -> None:
        self._events = AnswerEvents(answer)
        self._echo: Echo = answer.echo or Echo()

    def open(self) -> bytes:
        return _framed(self._events.open())

    def feed(self, event: Event) -> bytes:
        return self.fail(event.error) if isinstance(event, Failed) else _framed(self._events.feed(event))

    def ping(self) -> bytes:
        """Return an event of an unknown type, which clients ignore.

        It would end a tool, but it never falls inside one, because every tool is emitted at once.
        """
        return _PING

    def fail(self, error: DragomanError) -> bytes:
        return encode_exception(*stream_error(error, kiro=self._echo.kiro))


def _framed(told: EncodedEvents) -> bytes:
    return b"".join(encode_event(_HEADS[kind], payload) for kind, payload in told)


def encode_response(response: Response, answer: Answer) -> bytes:
    events = AnswerEvents(answer)
    encoded = events.open()
    for event in replay(response):
        encoded += events.feed(event)
    return b'{"events":[%b]}' % b",".join(
        b'{"%b":%b}' % (kind.encode(), payload) for kind, payload in encoded
    )


def encode_count(tokens: int) -> bytes:
    """Return a token count in Bedrock's format; Amazon Q's own API has no operation for it."""
    return b'{"inputTokens":%d}' % tokens
