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

name = "openai_chat"
stream = CompletionStream
call_prefix = "call"
message_prefix = "chatcmpl"
stream_type = SSE_TYPE
id_header = "x-request-id"
keeps_native = False
server_kinds: frozenset[ServerKind] = frozenset(
    {"web_search", "web_fetch"}
)  # only their sources, as annotations
opening_grace_s = OPENING_GRACE_S
fails_in_stream: frozenset[ErrorKind] = frozenset()

__all__ = [
    "CompletionStream",
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
