"""Amazon Bedrock's API as a client dialect: Converse, CountTokens, and InvokeModel around another dialect."""

from __future__ import annotations

from dragoman.dialects.base import Answer, ClientDialect, Decoded, Headers, Reply
from dragoman.dialects.bedrock.decode import decode_count_request, decode_request
from dragoman.dialects.bedrock.encode import encode_count, encode_response
from dragoman.dialects.bedrock.errors import encode_error
from dragoman.dialects.bedrock.invoke import InvokeClient
from dragoman.dialects.bedrock.stream import ConverseStream
from dragoman.errors import DragomanError, ErrorKind
from dragoman.http.aws_eventstream import STREAM_TYPE
from dragoman.ir import Response, ServerKind


class ConverseClient:
    """`/converse` and `/converse-stream`; the model and whether to stream come from the URL."""

    name = "bedrock"
    call_prefix = "tooluse"
    message_prefix = "msg"
    stream_type = STREAM_TYPE
    id_header = "x-amzn-requestid"
    keeps_native = False
    server_kinds: frozenset[ServerKind] = frozenset()
    fails_in_stream: frozenset[ErrorKind] = frozenset()
    #: The SDKs retry after an HTTP error, but never after an exception inside a stream, so wait for the status.
    opening_grace_s = 15.0

    def __init__(self, model: str = "", *, stream: bool = False) -> None:
        self._model = model
        self._stream = stream

    def decode_request(self, body: bytes, headers: Headers) -> Decoded:
        del headers  # Converse requests use only the URL and the body
        return decode_request(body, self._model, stream=self._stream)

    def stream(self, answer: Answer) -> ConverseStream:
        return ConverseStream(answer)

    def encode_response(self, response: Response, answer: Answer) -> bytes:
        return encode_response(response, answer)

    def encode_error(self, error: DragomanError) -> Reply:
        return encode_error(error)

    def encode_count(self, tokens: int) -> bytes:
        return encode_count(tokens)


class CountClient(ConverseClient):
    """`/count-tokens`; `inner` decodes the body of an InvokeModel request."""

    def __init__(self, inner: ClientDialect, model: str) -> None:
        super().__init__(model)
        self._inner = inner

    def decode_request(self, body: bytes, headers: Headers) -> Decoded:
        return decode_count_request(body, headers, self._model, self._inner)


__all__ = ["ConverseClient", "CountClient", "InvokeClient"]
