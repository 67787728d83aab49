"""The API of Amazon Q Developer and Kiro (CodeWhisperer streaming, three variants) as a client dialect."""

from __future__ import annotations

from dragoman.dialects.amazonq.decode import Echo, decode_request
from dragoman.dialects.amazonq.errors import encode_error
from dragoman.dialects.amazonq.stream import AssistantStream, encode_count, encode_response
from dragoman.dialects.base import Answer, Decoded, Headers, Reply
from dragoman.errors import DragomanError, ErrorKind
from dragoman.http.aws_eventstream import STREAM_TYPE
from dragoman.ir import Response, ServerKind

_KIRO = "KiroRuntimeService."


class AmazonQ:
    """The client dialect for one request.

    `target` is the operation with its service, from `x-amz-target`; Kiro's service has its own exception names.
    `conversation_id` is used for a conversation that the client has not named yet.
    """

    name = "amazonq"
    call_prefix = "tooluse"
    message_prefix = "utt"
    stream_type = STREAM_TYPE
    id_header = "x-amzn-requestid"
    keeps_native = False
    server_kinds: frozenset[ServerKind] = frozenset()
    fails_in_stream: frozenset[ErrorKind] = frozenset()
    #: Clients compact, wait or change the model only after an HTTP error; they wait for minutes.
    opening_grace_s = 15.0

    def __init__(self, target: str = "", conversation_id: str = "") -> None:
        self._echo = Echo(conversation_id=conversation_id, kiro=target.startswith(_KIRO))

    def decode_request(self, body: bytes, headers: Headers) -> Decoded:
        del headers  # they only identify the caller
        return decode_request(body, self._echo)

    def stream(self, answer: Answer) -> AssistantStream:
        return AssistantStream(answer)

    def encode_response(self, response: Response, answer: Answer) -> bytes:
        return encode_response(response, answer)

    def encode_error(self, error: DragomanError) -> Reply:
        return encode_error(error)

    def encode_count(self, tokens: int) -> bytes:
        return encode_count(tokens)


__all__ = ["AmazonQ"]
