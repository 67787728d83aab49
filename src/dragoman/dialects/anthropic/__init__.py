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


class MessagesClient:
    """The client dialect. Everything is in the request body, so one object serves all requests."""

    name = "anthropic"
    call_prefix = "toolu"
    message_prefix = "msg"
    stream_type = SSE_TYPE
    id_header = "request-id"
    keeps_native = False
    server_kinds = KINDS
    fails_in_stream: frozenset[ErrorKind] = frozenset()
    opening_grace_s = OPENING_GRACE_S
    decode_request = staticmethod(decode_request)
    stream = MessagesStream
    encode_response = staticmethod(encode_response)
    encode_error = staticmethod(encode_error)
    encode_count = staticmethod(encode_count)


__all__ = [
    "MessagesClient",
    "MessagesStream",
    "decode_request",
    "encode_count",
    "encode_error",
    "encode_response",
]
