"""The client dialect of the OpenAI Responses API, which Codex and others use, and that of `/responses/compact`.

See https://platform.openai.com/docs/api-reference/responses.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.dialects.base import OPENING_GRACE_S, SSE_TYPE, Answer, Decoded, Headers, Reply
from dragoman.dialects.openai_responses.compaction import compact_request, compact_response
from dragoman.dialects.openai_responses.conversation_state import input_items
from dragoman.dialects.openai_responses.decode import decode_request, stands_alone
from dragoman.dialects.openai_responses.encode import encode_count
from dragoman.dialects.openai_responses.errors import encode_error, fails_in_stream
from dragoman.dialects.openai_responses.server_tools_out import KINDS
from dragoman.dialects.openai_responses.stream import ResponsesStream, encode_response, failed_stream
from dragoman.errors import DragomanError
from dragoman.ir import Response, ServerKind

name = "openai_responses"
stream = ResponsesStream
call_prefix = "call"
message_prefix = "resp"
stream_type = SSE_TYPE
id_header = "x-request-id"
keeps_native = False
server_kinds = KINDS
opening_grace_s = OPENING_GRACE_S

__all__ = [
    "ResponsesStream",
    "call_prefix",
    "decode_request",
    "encode_count",
    "encode_error",
    "encode_response",
    "failed_stream",
    "fails_in_stream",
    "id_header",
    "keeps_native",
    "message_prefix",
    "name",
    "opening_grace_s",
    "server_kinds",
    "stands_alone",
    "stream",
    "stream_type",
]


class CompactClient:
    """The dialect for one request.

    It holds the input items of its request, because the answer repeats the user messages beside the summary.
    """

    name = "openai_responses"
    call_prefix = "call"
    message_prefix = "resp"
    stream_type = SSE_TYPE
    id_header = "x-request-id"
    keeps_native = False
    server_kinds: frozenset[ServerKind] = frozenset()  # a compaction has no items for them
    fails_in_stream = fails_in_stream
    opening_grace_s = OPENING_GRACE_S

    def __init__(self, token: str) -> None:
        self._token = token  # part of the ids given to input items without one
        self._items: Sequence[bytes] = ()

    def decode_request(self, body: bytes, headers: Headers) -> Decoded:
        self._items = input_items(body, self._token)
        return decode_request(compact_request(body), headers)

    def stream(self, answer: Answer) -> ResponsesStream:
        return ResponsesStream(answer)

    def encode_response(self, response: Response, answer: Answer) -> bytes:
        return compact_response(encode_response(response, answer), self._items)

    def encode_error(self, error: DragomanError) -> Reply:
        return encode_error(error)

    def encode_count(self, tokens: int) -> bytes:
        return encode_count(tokens)
