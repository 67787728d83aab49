"""OpenAI's Chat Completions API, as a client speaks it."""

from dragoman.dialects.base import SSE_TYPE
from dragoman.dialects.openai_chat.decode import decode_request
from dragoman.dialects.openai_chat.encode import encode_count, encode_response
from dragoman.dialects.openai_chat.errors import encode_error
from dragoman.dialects.openai_chat.stream import CompletionStream
from dragoman.errors import ErrorKind

name = "openai_chat"
stream = CompletionStream
call_prefix = "call"
message_prefix = "chatcmpl"
stream_type = SSE_TYPE
keeps_native = False
fails_in_stream: frozenset[ErrorKind] = frozenset()

__all__ = [
    "CompletionStream",
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
