"""The client dialect of the Anthropic Messages API.

See https://docs.anthropic.com/en/api/messages.
"""

from dragoman.dialects.anthropic.decode import decode_request
from dragoman.dialects.anthropic.encode import encode_count, encode_response
from dragoman.dialects.anthropic.errors import encode_error
from dragoman.dialects.anthropic.server_tools_out import KINDS
from dragoman.dialects.anthropic.stream import MessagesStream
from dragoman.dialects.base import OPENING_GRACE_S, SSE_TYPE
from dragoman.errors import ErrorKind

name = "anthropic"
stream = MessagesStream
call_prefix = "toolu"
message_prefix = "msg"
stream_type = SSE_TYPE
id_header = "request-id"
keeps_native = False
server_kinds = KINDS
opening_grace_s = OPENING_GRACE_S
fails_in_stream: frozenset[ErrorKind] = frozenset()

__all__ = [
    "MessagesStream",
    "call_prefix",
    "decode_request",
    "encode_count",
    "encode_error",
    "encode_response",
    "fails_in_stream",
    "id_header",
    "keeps_native",
    "message_prefix",
    "name",
    "opening_grace_s",
    "server_kinds",
    "stream",
    "stream_type",
]
