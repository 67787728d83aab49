"""The Anthropic Messages API, as a client speaks it."""

from dragoman.dialects.anthropic.decode import decode_request
from dragoman.dialects.anthropic.encode import encode_count, encode_response
from dragoman.dialects.anthropic.errors import encode_error
from dragoman.dialects.anthropic.stream import MessagesStream

name = "anthropic"
stream = MessagesStream
call_prefix = "toolu"
message_prefix = "msg"

__all__ = [
    "MessagesStream",
    "call_prefix",
    "decode_request",
    "encode_count",
    "encode_error",
    "encode_response",
    "message_prefix",
    "name",
    "stream",
]
