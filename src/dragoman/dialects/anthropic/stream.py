"""Encode events as the event stream of the Messages API.

See https://docs.anthropic.com/en/api/messages-streaming.
"""

from __future__ import annotations

from typing import assert_never

import msgspec

from dragoman.dialects.anthropic.encode import encode_stop, encode_usage, open_message
from dragoman.dialects.anthropic.errors import error_body
from dragoman.dialects.anthropic.server_tools_out import KINDS, call_block, citations, result_block
from dragoman.dialects.base import Answer
from dragoman.errors import DragomanError
from dragoman.http.sse import encode_event
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
_PING = encode_event("ping", b'{"type":"ping"}')
_START = b'event: content_block_start\ndata: {"type":"content_block_start","index":%d,"content_block":%b}\n\n'
_DELTA = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":"%b","%b":%b}}\n\n'
_TEXT = _DELTA.replace(b'"%b","%b"', b'"text_delta","text"')
_STOP = b'event: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n'
_EMPTY = {
    "text": b'{"type":"text","text":""}',
    "thinking": b'{"type":"thinking","thinking":"","signature":""}',
}


class MessagesStream:
    """The stream of one answer.

    Grammar: message_start, content blocks (start, deltas, stop; one at a time, with rising index), message_delta,
    message_stop.

    A thinking block may hold the signature of the call that follows it. Clients that did not ask for thinking get no
    thinking blocks; for them the gateway keeps signatures in its store.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._index = -1
        self._open: str = ""
        self._calls: dict[str, ServerCall] = {}
        self._usage = Usage()

    def open(self) -> bytes:
        return encode_event(
            "message_start", b'{"type":"message_start","message":%b}' % open_message(self._answer)
        )

    def ping(self) -> bytes:
        return _PING

    def feed(self, event: Event) -> bytes:
        if isinstance(event, TextDelta):  # nearly every event
            opening = b"" if self._open == "text" else self._enter("text")
            return opening + _TEXT % (self._index, _json(event.text))
        match event:
            case ThoughtDelta():
                return self._thought(event)
            case CitedText():
                return self._cited(event)
            case SignatureDelta():
                return self._signed(event)
            case ToolCall():
                return self._call(event)
            case ServerCall() | ServerResult():
                return self._served(event)
            case _:
                return self._note(event)

    def _note(self, event: Usage | Started | Native | Finished | Failed) -> bytes:
        match event:
            case Usage():
                self._usage = event
                return b""
            case Started() | Native():
                return b""
            case Finished():
                return self._finish(event)
            case Failed():
                return self.fail(event.error)
            case _:
                assert_never(event)

    def fail(self, error: DragomanError) -> bytes:
        return self._leave() + encode_event("error", error_body(error))

    def _cited(self, event: CitedText) -> bytes:
        """Encode cited text as a block of its own, because citations apply to the whole block."""
        start = self._leave() + self._start("cited", b'{"type":"text","text":"","citations":[]}')
        cited = (
            self._delta(b"citations_delta", b"citation", _json(entry)) for entry in citations(event.sources)
        )
        text = self._delta(b"text_delta", b"text", _json(event.text))
        return start + b"".join(cited) + text + self._leave()

    def _served(self, event: ServerCall | ServerResult) -> bytes:
        if event.kind not in KINDS:
            return b""
        if isinstance(event, ServerResult):
            block = result_block(event, self._calls.get(event.call_id))
            return self._leave() + self._start("served", _json(block)) + self._leave()
        self._calls[event.id] = event
        block = call_block(event)
        given = _json(block["input"]).decode()
        carrier = b""
        if (
            event.kind == "tool_search"
        ):  # Google ran this call as a function call and wants its signature back
            carrier = self._carry(event.signature, event.id)
        out = carrier + self._leave() + self._start("served", _json({**block, "input": {}}))
        return out + self._delta(b"input_json_delta", b"partial_json", _json(given)) + self._leave()

    def _thought(self, event: ThoughtDelta) -> bytes:
        if not self._answer.with_thinking:
            return b""
        return self._enter("thinking") + self._delta(b"thinking_delta", b"thinking", _json(event.text))

    def _signed(self, event: SignatureDelta) -> bytes:
        """Encode a signature of a thought, or of the end of an answer that ended with a thought."""
        thinking = self._open == "thinking"
        if not self._answer.with_thinking or not (thinking or event.target == ON_THOUGHT):
            return b""
        target = ON_THOUGHT if event.target == ON_THOUGHT else AFTER_TEXT
        return self._enter("thinking") + self._sign(event.signature, target) + self._leave()

    def _call(self, call: ToolCall) -> bytes:
        carrier = self._carry(call.signature, call.id)
        block = _json({"type": "tool_use", "id": call.id, "name": call.name, "input": {}})
        start = carrier + self._leave() + self._start("tool_use", block)
        given = self._delta(b"input_json_delta", b"partial_json", _json(call.args.decode()))
        return start + given + self._leave()

    def _carry(self, signature: Signature | None, target: str) -> bytes:
        """Put the signature of the next block into the thinking block before it."""
        if signature is None or not self._answer.with_thinking:
            return b""
        return self._enter("thinking") + self._sign(signature, target)

    def _sign(self, signature: Signature, target: str) -> bytes:
        return self._delta(b"signature_delta", b"signature", _json(seal(signature, target)))

    def _enter(self, kind: str) -> bytes:
        if self._open == kind:
            return b""
        return self._leave() + self._start(kind, _EMPTY[kind])

    def _start(self, kind: str, block: bytes) -> bytes:
        self._open = kind
        self._index += 1
        return _START % (self._index, block)

    def _delta(self, kind: bytes, field: bytes, value: bytes) -> bytes:
        return _DELTA % (self._index, kind, field, value)

    def _leave(self) -> bytes:
        if not self._open:
            return b""
        self._open = ""
        return _STOP % self._index

    def _finish(self, finished: Finished) -> bytes:
        delta = b'{"type":"message_delta","delta":%b,"usage":%b}' % (
            encode_stop(finished),
            encode_usage(self._usage, self._answer),
        )
        return (
            self._leave()
            + encode_event("message_delta", delta)
            + encode_event("message_stop", b'{"type":"message_stop"}')
        )
