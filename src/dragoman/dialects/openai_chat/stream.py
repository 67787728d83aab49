"""Encode events as a stream of chat completion chunks.

See https://platform.openai.com/docs/api-reference/chat-streaming.
"""

from __future__ import annotations

from typing import Any, assert_never

import msgspec

from dragoman.dialects.base import Answer
from dragoman.dialects.openai_chat.encode import (
    echo_of,
    encode_annotations,
    encode_call,
    encode_finish,
    encode_function,
    encode_id,
    encode_refusal,
    encode_signature,
    encode_uncited,
    encode_usage,
)
from dragoman.dialects.openai_chat.errors import error_body
from dragoman.dialects.openai_chat.messages import legacy_id
from dragoman.errors import DragomanError
from dragoman.ir import (
    AFTER_TEXT,
    ON_TEXT,
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
_PING = b": ping\n\n"  # an SSE comment, which parsers ignore
_DONE = b"data: [DONE]\n\n"

#: Type of a call -> the field that is sent in deltas.
_STREAMED = {"function": "arguments", "custom": "input"}


class CompletionStream:
    """The stream of one answer.

    Grammar: a chunk with the role, chunks with deltas, a chunk with the finish reason, a chunk with the usage if the
    client asked for it, [DONE].

    A call is sent when it is complete, so that the client never gets a broken one. The signature of the message is
    sent once, at the end, because clients concatenate the strings of all deltas. No [DONE] follows an error: the SDKs
    raise an exception for an `error`, and a client that only looks for [DONE] must not take the answer for complete.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._echo = echo_of(answer)
        self._head = (
            b'data: {"id":%b,"object":"chat.completion.chunk","created":%d,"model":%b,"system_fingerprint":null,'
            % (_json(encode_id(answer)), answer.created_s, _json(answer.model))
        )
        self._tail = b',"usage":null}\n\n' if self._echo.include_usage else b"}\n\n"
        self._before_text, _, self._behind_text = self._chunk(b'{"content":\0}').partition(b"\0")
        self._calls = 0
        self._has_text = self._in_text = False
        self._chars = 0
        self._annotations: list[dict[str, Any]] = []
        self._results: list[ServerResult] = []
        self._signature: dict[str, Any] | None = None
        self._call_signature: dict[str, Any] | None = None  # of a deprecated `function_call`
        self._usage = Usage()

    def open(self) -> bytes:
        return self._chunk(b'{"role":"assistant","content":null}')

    def ping(self) -> bytes:
        return _PING

    def feed(self, event: Event) -> bytes:
        if isinstance(event, TextDelta):  # nearly every event
            return self._text(event.text)
        match event:
            case CitedText():
                return self._cited(event)
            case ThoughtDelta():
                return self._thought(event.text)
            case ToolCall():
                return self._call(event)
            case SignatureDelta():
                self._sign(event)
                return b""
            case _:
                return self._note(event)

    def _note(self, event: Usage | Started | Native | ServerCall | ServerResult | Finished | Failed) -> bytes:
        match event:
            case Usage():
                self._usage = event
                return b""
            case Started() | Native():
                return b""
            case ServerCall():
                self._in_text = False
                return b""
            case ServerResult():
                self._results.append(event)
                self._in_text = False
                return b""
            case Finished():
                return self._finish(event)
            case Failed():
                return self.fail(event.error)
            case _:
                assert_never(event)

    def fail(self, error: DragomanError) -> bytes:
        return b"data: %b\n\n" % error_body(error)

    def _chunk(self, delta: bytes, finish_reason: bytes = b"null") -> bytes:
        choice = b'"choices":[{"index":0,"delta":%b,"logprobs":null,"finish_reason":%b}]' % (
            delta,
            finish_reason,
        )
        return self._head + choice + self._tail

    def _text(self, text: str) -> bytes:
        if not text:
            return b""
        self._has_text = self._in_text = True
        self._chars += len(text)
        return self._before_text + _json(text) + self._behind_text

    def _cited(self, event: CitedText) -> bytes:
        """Encode cited text; its sources are sent at the end, with offsets in the whole text."""
        out = self._text(event.text)
        start = self._chars - len(event.text)
        self._annotations += encode_annotations(event.sources, start, self._chars)
        return out

    def _thought(self, text: str) -> bytes:
        self._in_text = False
        if not text or not self._answer.with_thinking:
            return b""
        return self._chunk(b'{"reasoning_content":%b}' % _json(text))

    def _sign(self, event: SignatureDelta) -> None:
        if event.target == ON_THOUGHT:
            if self._answer.with_thinking:
                self._signature = encode_signature(event.signature, ON_THOUGHT)
        else:
            target = ON_TEXT if event.target == ON_TEXT and self._in_text else AFTER_TEXT
            self._signature = encode_signature(event.signature, target)
        self._in_text = False

    def _call(self, call: ToolCall) -> bytes:
        self._in_text = False
        index = self._calls
        self._calls += 1
        if self._echo.legacy:
            return self._function_call(call) if index == 0 else b""
        wire = {"index": index, **encode_call(call, self._echo)}
        kind = wire["type"]
        field = _STREAMED[kind]
        text = wire[kind].pop(field)
        first = {**wire, kind: {**wire[kind], field: ""}}
        rest = {"index": index, kind: {field: text}}
        return b"".join(self._chunk(_json({"tool_calls": [piece]})) for piece in (first, rest))

    def _function_call(self, call: ToolCall) -> bytes:
        """Encode the deprecated `function_call`: only one, without id; the message carries its signature."""
        if call.signature is not None:
            self._call_signature = encode_signature(call.signature, legacy_id(call.name))
        wire = encode_function(call)
        pieces = ({**wire, "arguments": ""}, {"arguments": wire["arguments"]})
        return b"".join(self._chunk(_json({"function_call": piece})) for piece in pieces)

    def _finish(self, finished: Finished) -> bytes:
        refusal = encode_refusal(finished)
        delta: dict[str, Any] = {}
        if refusal is not None:
            delta["refusal"] = refusal
        elif not self._has_text and not self._calls:
            delta["content"] = ""
        annotations = self._annotations or encode_uncited(self._results, self._chars)
        if annotations:
            delta["annotations"] = annotations
        signature = self._call_signature or self._signature
        if signature is not None:
            delta["extra_content"] = signature
        last = self._chunk(_json(delta), _json(encode_finish(finished, self._echo)))
        return last + self._usage_chunk() + _DONE

    def _usage_chunk(self) -> bytes:
        if not self._echo.include_usage:
            return b""
        usage = _json(encode_usage(self._usage, self._answer))
        return self._head + b'"choices":[],"usage":%b}\n\n' % usage
