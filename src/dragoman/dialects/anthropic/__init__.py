"""The Anthropic Messages API, as a client speaks it."""

from dragoman.dialects.anthropic.decode import decode_request
from dragoman.dialects.anthropic.encode import encode_count, encode_response
from dragoman.dialects.anthropic.errors import encode_error
from dragoman.dialects.anthropic.stream import MessagesStream
from dragoman.dialects.base import SSE_TYPE
from dragoman.errors import ErrorKind

name = "anthropic"
stream = MessagesStream
call_prefix = "toolu"
message_prefix = "msg"
stream_type = SSE_TYPE
keeps_native = False
fails_in_stream: frozenset[ErrorKind] = frozenset()

__all__ = [
    "MessagesStream",
    "call_prefix",
    "decode_request",
    "encode_count",
    "encode_error",
    "encode_response",
    "fails_in_stream",
    "keeps_native",
    "message_prefix",
    "name",
    "stream",
    "stream_type",
]
