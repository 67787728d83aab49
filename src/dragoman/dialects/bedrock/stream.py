"""Encode events as the event stream of ConverseStream."""

from __future__ import annotations

from typing import assert_never

import msgspec

from dragoman.dialects.base import Answer
from dragoman.dialects.bedrock.encode import encode_metadata, encode_stop
from dragoman.dialects.bedrock.errors import encode_stream_error
from dragoman.errors import DragomanError
from dragoman.http.aws_eventstream import encode_event, encode_event_headers
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
    Signature,
    SignatureDelta,
    Started,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    Usage,
    seal,
)

_json = msgspec.json.Encoder().encode
_MESSAGE_START = encode_event(encode_event_headers("messageStart"), b'{"role":"assistant"}')
#: Bedrock has no such event; all clients ignore unknown events.
_PING = encode_event(encode_event_headers("ping"), b"{}")
_BLOCK_START = encode_event_headers("contentBlockStart")
_BLOCK_DELTA = encode_event_headers("contentBlockDelta")
_BLOCK_STOP = encode_event_headers("contentBlockStop")
_MESSAGE_STOP = encode_event_headers("messageStop")
_METADATA = encode_event_headers("metadata")

_TEXT = b'{"contentBlockIndex":%d,"delta":{"text":%b}}'
_REASONING = b'{"contentBlockIndex":%d,"delta":{"reasoningContent":{"%b":%b}}}'
_INPUT = b'{"contentBlockIndex":%d,"delta":{"toolUse":{"input":%b}}}'
_TOOL = b'{"contentBlockIndex":%d,"start":{"toolUse":%b}}'
_STOP = b'{"contentBlockIndex":%d}'


class ConverseStream:
    """Emits messageStart, then blocks (one at a time, with ascending index), messageStop and metadata.

    A block consists of deltas and a stop; only a tool block has a start. A reasoning block may have the sealed
    signature of the call that follows it. A client that did not ask for reasoning gets no such block; the
    signature is then restored from the store.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._index = -1
        self._open = ""
        self._usage = Usage()

    def open(self) -> bytes:
        return _MESSAGE_START

    def ping(self) -> bytes:
        """Return a ping, which never falls inside a tool block: `_call` emits a complete block.

        Some clients take any other event for the end of the tool block.
        """
        return _PING

    def feed(self, event: Event) -> bytes:
        match event:
            case TextDelta() | CitedText():
                return self._text(event.text)
            case ThoughtDelta():
                return self._thought(event.text)
            case SignatureDelta():
                return self._signed(event)
            case ToolCall():
                return self._call(event)
            case Usage():
                self._usage = event
                return b""
            case Started() | Native() | ServerCall() | ServerResult():
                return b""
            case Finished():
                return self._finish(event)
            case Failed():
                return self.fail(event.error)
            case _:
                assert_never(event)

    def fail(self, error: DragomanError) -> bytes:
        return self._close_block() + encode_stream_error(error)

    def _text(self, text: str) -> bytes:
        if not text:
            return b""
        opening = self._open_block("text")
        return opening + encode_event(_BLOCK_DELTA, _TEXT % (self._index, _json(text)))

    def _thought(self, text: str) -> bytes:
        if not text or not self._answer.with_thinking:
            return b""
        opening = self._open_block("reasoning")
        return opening + self._reasoning(b"text", text)

    def _signed(self, event: SignatureDelta) -> bytes:
        """Emit the signature of a thought, or that of an answer that ends with a thought."""
        thinking = self._open == "reasoning"
        if not self._answer.with_thinking or not (thinking or event.target == ON_THOUGHT):
            return b""
        target = ON_THOUGHT if event.target == ON_THOUGHT else AFTER_TEXT
        return self._sign(event.signature, target) + self._close_block()

    def _call(self, call: ToolCall) -> bytes:
        signed = b""
        if call.signature is not None and self._answer.with_thinking:
            signed = self._sign(call.signature, call.id)
        opening = self._open_block("tool")
        use = _json({"toolUseId": call.id, "name": call.name})
        start = encode_event(_BLOCK_START, _TOOL % (self._index, use))
        given = encode_event(_BLOCK_DELTA, _INPUT % (self._index, _json(call.args.decode())))
        return signed + opening + start + given + self._close_block()

    def _sign(self, signature: Signature, target: str) -> bytes:
        """Emit a signature in a reasoning block; a new block gets an empty text, which boto3 requires."""
        opening = b""
        if self._open != "reasoning":
            opening = self._open_block("reasoning") + self._reasoning(b"text", "")
        return opening + self._reasoning(b"signature", seal(signature, target))

    def _reasoning(self, field: bytes, value: str) -> bytes:
        return encode_event(_BLOCK_DELTA, _REASONING % (self._index, field, _json(value)))

    def _open_block(self, kind: str) -> bytes:
        if self._open == kind:
            return b""
        left = self._close_block()
        self._open = kind
        self._index += 1
        return left

    def _close_block(self) -> bytes:
        if not self._open:
            return b""
        self._open = ""
        return encode_event(_BLOCK_STOP, _STOP % self._index)

    def _finish(self, finished: Finished) -> bytes:
        stop = encode_stop(finished, self._usage, self._answer)
        metadata = encode_metadata(self._usage, self._answer)
        return (
            self._close_block()
            + encode_event(_MESSAGE_STOP, _json(stop))
            + encode_event(_METADATA, _json(metadata))
        )
