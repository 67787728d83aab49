"""InvokeModel: the Anthropic Messages API, with its stream events in Amazon event stream messages."""

from __future__ import annotations

import base64
import re
from typing import Any

import msgspec

from dragoman.dialects.base import Answer, ClientDialect, ClientStream, Decoded, HeaderList, Headers, Reply
from dragoman.dialects.bedrock.encode import encode_count
from dragoman.dialects.bedrock.errors import encode_error, encode_stream_error
from dragoman.errors import DragomanError, ErrorKind
from dragoman.http.aws_eventstream import STREAM_TYPE, encode_event, encode_event_headers
from dragoman.http.sse import SseDecoder
from dragoman.ir import Event, Failed, Response

_json = msgspec.json.Encoder().encode
_CHUNK = encode_event_headers("chunk")
_OPENING = re.compile(rb"\s*\{\s*(\}?)")
_STREAM_HEADERS: HeaderList = (("x-amzn-bedrock-content-type", "application/json"),)


def decode_invoked(
    inner: ClientDialect, body: bytes, headers: Headers, model: str, *, stream: bool
) -> Decoded:
    """Decode a Messages request; the model and whether to stream come from the URL, not from the body."""
    decoded = inner.decode_request(_with_model(body, model), headers)
    request = msgspec.structs.replace(decoded.request, model=model, stream=stream)
    return msgspec.structs.replace(decoded, request=request)


def _with_model(body: bytes, model: str) -> bytes:
    opening = _OPENING.match(body)
    if opening is None:  # not an object: the inner dialect reports the error
        return body
    comma = b"" if opening[1] else b","
    return b'{"model":%b%b%b' % (_json(model), comma, body[opening.start(1) :])


class InvokeClient:
    """`/invoke` and `/invoke-with-response-stream` with a body in the dialect `inner`."""

    name = "bedrock"
    stream_type = STREAM_TYPE
    id_header = "x-amzn-requestid"
    keeps_native = False
    fails_in_stream: frozenset[ErrorKind] = frozenset()

    def __init__(self, inner: ClientDialect, model: str, *, stream: bool) -> None:
        self.call_prefix = inner.call_prefix
        self.message_prefix = inner.message_prefix
        self.server_kinds = inner.server_kinds
        self.opening_grace_s = inner.opening_grace_s
        self._inner = inner
        self._model = model
        self._stream = stream

    def decode_request(self, body: bytes, headers: Headers) -> Decoded:
        decoded = decode_invoked(self._inner, body, headers, self._model, stream=self._stream)
        return msgspec.structs.replace(decoded, headers=_STREAM_HEADERS if self._stream else ())

    def stream(self, answer: Answer) -> InvokeStream:
        return InvokeStream(self._inner.stream(answer))

    def encode_response(self, response: Response, answer: Answer) -> bytes:
        return self._inner.encode_response(response, answer)

    def encode_error(self, error: DragomanError) -> Reply:
        """Encode an error with the fields of Amazon and of the inner dialect: Anthropic's SDK reads both."""
        reply = encode_error(error)
        nested: dict[str, Any] = msgspec.json.decode(self._inner.encode_error(error).body)
        amazon: dict[str, Any] = msgspec.json.decode(reply.body)
        return msgspec.structs.replace(reply, body=_json({**amazon, **nested}))

    def encode_count(self, tokens: int) -> bytes:
        return encode_count(tokens)


class InvokeStream:
    """Wraps every server-sent event of the inner stream in a `chunk` event.

    A failure is sent twice: as the inner dialect's error event, after which Claude Code resumes (an exception
    alone ends its run), and as the exception that clients of the plain AWS SDK expect.
    """

    def __init__(self, inner: ClientStream) -> None:
        self._inner = inner
        self._decoder = SseDecoder()

    def open(self) -> bytes:
        return self._chunks(self._inner.open())

    def feed(self, event: Event) -> bytes:
        return self.fail(event.error) if isinstance(event, Failed) else self._chunks(self._inner.feed(event))

    def ping(self) -> bytes:
        return self._chunks(self._inner.ping())

    def fail(self, error: DragomanError) -> bytes:
        return self._chunks(self._inner.fail(error)) + encode_stream_error(error)

    def _chunks(self, data: bytes) -> bytes:
        return b"".join(
            encode_event(_CHUNK, b'{"bytes":"%b"}' % base64.b64encode(event.data))
            for event in self._decoder.feed(data)
        )
