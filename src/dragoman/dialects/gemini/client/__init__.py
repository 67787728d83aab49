"""Gemini's own API (generateContent) as a client dialect: the other side of `dragoman.dialects.gemini`."""

from __future__ import annotations

from typing import Literal

from dragoman.dialects.base import OPENING_GRACE_S, SSE_TYPE, Answer, Decoded, Headers, Reply
from dragoman.dialects.gemini.client.decode import decode_count_request, decode_request
from dragoman.dialects.gemini.client.encode import encode_count, encode_response
from dragoman.dialects.gemini.client.errors import encode_error
from dragoman.dialects.gemini.client.stream import ArrayStream, SseStream
from dragoman.errors import DragomanError, ErrorKind
from dragoman.ir import Response, ServerKind

JSON_TYPE = "application/json; charset=UTF-8"
Framing = Literal["whole", "sse", "array", "count"]


class GeminiClient:
    """The client dialect for one request.

    The model and the framing of the answer come from the URL, not from the body.
    """

    name = "gemini"
    call_prefix = "call"
    message_prefix = "resp"
    id_header = ""
    keeps_native = True
    server_kinds: frozenset[ServerKind] = frozenset()
    fails_in_stream: frozenset[ErrorKind] = frozenset()
    opening_grace_s = OPENING_GRACE_S

    def __init__(self, model: str = "", framing: Framing = "whole") -> None:
        self.stream_type = SSE_TYPE if framing == "sse" else JSON_TYPE
        self._model = model
        self._framing = framing

    def decode_request(self, body: bytes, headers: Headers) -> Decoded:
        del headers  # Gemini requests use only the URL and the body
        if self._framing == "count":
            return decode_count_request(body, self._model)
        return decode_request(body, self._model, stream=self._framing != "whole")

    def stream(self, answer: Answer) -> SseStream:
        return ArrayStream(answer) if self._framing == "array" else SseStream(answer)

    def encode_response(self, response: Response, answer: Answer) -> bytes:
        return encode_response(response, answer)

    def encode_error(self, error: DragomanError) -> Reply:
        return encode_error(error, in_array=self._framing == "array")

    def encode_count(self, tokens: int) -> bytes:
        return encode_count(tokens)


__all__ = ["Framing", "GeminiClient"]
