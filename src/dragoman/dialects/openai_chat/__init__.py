"""The client dialect of the OpenAI Chat Completions API.

See https://platform.openai.com/docs/api-reference/chat.
"""

from dragoman.dialects.base import OPENING_GRACE_S, SSE_TYPE
from dragoman.dialects.openai_chat.decode import decode_request
from dragoman.dialects.openai_chat.encode import encode_count, encode_response
from dragoman.dialects.openai_chat.errors import encode_error
from dragoman.dialects.openai_chat.stream import CompletionStream
from dragoman.errors import ErrorKind
from dragoman.ir import ServerKind


class ChatClient:
    """The client dialect. Everything is in the request body, so one object serves all requests."""

    name = "openai_chat"
    call_prefix = "call"
    message_prefix = "chatcmpl"
    stream_type = SSE_TYPE
    id_header = "x-request-id"
    keeps_native = False
    #: Only their sources, as annotations.
    server_kinds: frozenset[ServerKind] = frozenset({"web_search", "web_fetch"})
    fails_in_stream: frozenset[ErrorKind] = frozenset()
    opening_grace_s = OPENING_GRACE_S
    decode_request = staticmethod(decode_request)
    stream = CompletionStream
    encode_response = staticmethod(encode_response)
    encode_error = staticmethod(encode_error)
    encode_count = staticmethod(encode_count)


__all__ = [
    "ChatClient",
    "CompletionStream",
    "decode_request",
    "encode_count",
    "encode_error",
    "encode_response",
]
