"""The client dialect of the OpenAI Responses API, which Codex and others use.

See https://platform.openai.com/docs/api-reference/responses.
"""

from dragoman.dialects.base import OPENING_GRACE_S, SSE_TYPE
from dragoman.dialects.openai_responses.decode import decode_request, stands_alone
from dragoman.dialects.openai_responses.encode import encode_count
from dragoman.dialects.openai_responses.errors import encode_error, fails_in_stream
from dragoman.dialects.openai_responses.served import KINDS
from dragoman.dialects.openai_responses.stream import ResponsesStream, encode_response, failed_stream

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
