"""What a dialect must be able to do: the two protocols every folder here fulfils, and their values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from dragoman.errors import DragomanError, ErrorKind, UpstreamError
from dragoman.ir import Effort, Event, Request, Response, ServerKind
from dragoman.notes import Note

Headers = Mapping[str, str]
HeaderList = tuple[tuple[str, str], ...]
#: How long a stream waits for Google's status before it opens by itself: a refusal is an honest status until then.
OPENING_GRACE_S = 0.4
SSE_TYPE = "text/event-stream; charset=utf-8"

#: How hard to think, in the words that OpenAI's and Anthropic's clients share.
EFFORTS: dict[str, Effort] = {
    "minimal": "minimal",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "max",
    "max": "max",
}


class Decoded(msgspec.Struct, frozen=True):
    """A client's request understood, and what of it could not be kept.

    `echo` is the dialect's own business: what its answer must repeat or dress up again.
    `headers` are for the answer, whatever it will be.
    """

    request: Request
    notes: tuple[Note, ...] = ()
    echo: Any = None
    headers: HeaderList = ()


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a client dialect must know to dress an answer."""

    id: str
    model: str  # the name the client asked for
    input_tokens: int = 0  # our estimate, until the upstream counts
    with_thinking: bool = False  # the client asked for thinking, so it keeps thinking blocks
    created_s: int = 0  # seconds since the epoch
    context_tokens: int = 0  # how much the model that runs can read, 0: not known
    elapsed_ms: Callable[[], int] = int  # since the request came
    echo: Any = None  # what the dialect's own `decode_request` left for its answer


class Reply(msgspec.Struct, frozen=True):
    """A whole HTTP answer in the client's dialect."""

    status: int
    body: bytes
    headers: HeaderList = ()


def error_headers(error: DragomanError) -> HeaderList:
    """Headers of an error that every JSON dialect's libraries understand."""
    headers: HeaderList = (("content-type", "application/json"),)
    if error.retry_after_s is not None:
        headers += (("retry-after", str(math.ceil(error.retry_after_s))),)
    if error.kind == "wrong_method":
        headers += (("allow", error.code),)
    if error.kind == "quota":  # libraries retry every 429 unless told not to
        headers += (("x-should-retry", "false"),)
    return headers


class ClientStream(Protocol):
    """Events in, the dialect's stream bytes out; every block it opens it also closes."""

    def open(self) -> bytes:
        """What can leave before the upstream has said anything."""
        ...

    def feed(self, event: Event) -> bytes: ...

    def ping(self) -> bytes:
        """Bytes that keep the line alive and mean nothing."""
        ...

    def fail(self, error: DragomanError) -> bytes:
        """Close what is open and say in the dialect's own way that the answer is broken."""
        ...


class ClientDialect(Protocol):
    name: str
    call_prefix: str
    message_prefix: str
    stream_type: str  # the content type of its streams
    id_header: str  # under which its clients look for the id of a request; may be empty
    keeps_native: bool  # can say what only Gemini says
    server_kinds: frozenset[ServerKind]  # tools of the service's own that it has words for
    fails_in_stream: frozenset[ErrorKind]  # told inside a stream even if nothing was sent yet
    opening_grace_s: float  # how long its streams wait for the upstream's status

    def decode_request(self, body: bytes, headers: Headers) -> Decoded: ...

    def stream(self, answer: Answer) -> ClientStream: ...

    def encode_response(self, response: Response, answer: Answer) -> bytes: ...

    def encode_error(self, error: DragomanError) -> Reply: ...

    def encode_count(self, tokens: int) -> bytes: ...


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where a request goes: the upstream's own model name and the kind of back end that serves it."""

    model: str
    backend: str = "gemini"
    proto_schemas: bool = False  # declare with the older `parameters` message
    trust_signatures: bool = True  # False: none of the history's signatures is sent
    own_thinking: bool = False  # leave the amount of thinking to the model
    relaxed_schemas: bool = False  # declare with fewer rules
    told_history: bool = False  # calls and results of the history are told in words
    without: tuple[str, ...] = ()  # places of the body that are left away, as Google names them
    unmixed_tools: bool = False  # nothing that Google runs itself beside functions


class Encoded(msgspec.Struct, frozen=True, kw_only=True):
    """An upstream request: the body, what got lost, and how to read the answer to it."""

    body: bytes
    notes: tuple[Note, ...]
    reader: Callable[[], UpstreamStream]


class UpstreamStream(Protocol):
    """Bytes of the answer in, in any slicing; events out, always ending in `Finished` or `Failed`."""

    @property
    def notes(self) -> Sequence[Note]:
        """What was lost on the way, so far."""
        ...

    @property
    def has_finish(self) -> bool:
        """Whether it was said why the answer stops; nothing but counts and signatures can follow."""
        ...

    def feed(self, data: bytes) -> list[Event]: ...

    def close(self) -> list[Event]: ...


class UpstreamDialect(Protocol):
    name: str

    def ends_with_user(self, target: Target) -> bool:
        """Whether a request to there must end with a turn of the user's."""
        ...

    def context_tokens(self, target: Target) -> int:
        """How long a prompt may be there."""
        ...

    def encode_request(self, request: Request, target: Target, new_id: Callable[[], str]) -> Encoded: ...

    def encode_count(self, request: Request, target: Target) -> bytes: ...

    def decode_count(self, body: bytes) -> int: ...

    def decode_error(self, status: int, headers: Headers, body: bytes) -> UpstreamError: ...
