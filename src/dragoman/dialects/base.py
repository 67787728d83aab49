"""The protocols that dialects implement, and the values they exchange with the rest of the program.

A `ClientDialect` decodes requests of clients and encodes the answers to them. An `UpstreamDialect` encodes
requests to the upstream API and decodes its answers. Both use the neutral model in `dragoman.ir`. The user location of
web search tools is here because Anthropic and OpenAI encode it with the same fields.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from dragoman.errors import DragomanError, ErrorKind, UpstreamError
from dragoman.ir import Effort, Event, Location, Request, Response, ServerKind
from dragoman.notes import Note

Headers = Mapping[str, str]
HeaderList = tuple[tuple[str, str], ...]
#: How long a streamed answer waits for the upstream status before its 200 and first bytes are sent. An upstream error
#: that arrives in time becomes an HTTP error status instead of an error inside the stream.
OPENING_GRACE_S = 0.4
SSE_TYPE = "text/event-stream; charset=utf-8"

#: Effort names of OpenAI's and Anthropic's APIs -> neutral effort.
EFFORTS: dict[str, Effort] = {
    "minimal": "minimal",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "max",
    "max": "max",
}


class Decoded(msgspec.Struct, frozen=True):
    """A decoded client request, with notes about everything that was lost in decoding.

    `echo` is private to the dialect: request data that its encoder needs for the answer.
    `headers` are added to the answer, whether it is a success or an error.
    """

    request: Request
    notes: tuple[Note, ...] = ()
    echo: Any = None
    headers: HeaderList = ()


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a client dialect needs to know to encode an answer."""

    id: str
    model: str  # the model name in the client's request
    input_tokens: int = 0  # our estimate, used until the upstream reports a count
    with_thinking: bool = False  # the client asked for thinking, so it accepts thinking blocks
    created_s: int = 0  # seconds since the epoch
    context_tokens: int = 0  # context window of the upstream model; 0 if unknown
    elapsed_ms: Callable[[], int] = int  # since the request arrived
    echo: Any = None  # `Decoded.echo` of the request


class Reply(msgspec.Struct, frozen=True):
    """A complete HTTP response in the client's dialect."""

    status: int
    body: bytes
    headers: HeaderList = ()


def error_headers(error: DragomanError) -> HeaderList:
    """Return the response headers of an error, as the SDKs of every JSON dialect understand them.

    For `wrong_method` errors, `error.code` holds the value of the `Allow` header.
    """
    headers: HeaderList = (("content-type", "application/json"),)
    if error.retry_after_s is not None:
        headers += (("retry-after", str(math.ceil(error.retry_after_s))),)
    if error.kind == "wrong_method":
        headers += (("allow", error.code),)
    if error.kind == "quota":  # the OpenAI and Anthropic SDKs retry every 429 without this header
        headers += (("x-should-retry", "false"),)
    return headers


class ClientStream(Protocol):
    """Encode events as the bytes of a streamed answer.

    Every content block that the stream opens is closed before the end, also when the answer fails.
    """

    def open(self) -> bytes:
        """Return the first bytes of the stream, which need no upstream data."""
        ...

    def feed(self, event: Event) -> bytes:
        """Return the bytes that encode an event, which may be none."""
        ...

    def ping(self) -> bytes:
        """Return bytes that keep an idle connection open and that clients ignore."""
        ...

    def fail(self, error: DragomanError) -> bytes:
        """Close open blocks and return the dialect's error event."""
        ...


class ClientDialect(Protocol):
    """An API that clients call. Modules and instances both implement it."""

    name: str
    call_prefix: str
    message_prefix: str
    stream_type: str  # content type of streamed answers
    id_header: str  # response header in which SDKs expect the request id; may be empty
    keeps_native: bool  # whether `Native` parts can be encoded
    server_kinds: frozenset[ServerKind]  # server tools whose calls and results can be encoded
    fails_in_stream: frozenset[ErrorKind]  # reported inside a 200 stream even if it has not started yet
    opening_grace_s: float  # how long a stream waits for the upstream status; see `OPENING_GRACE_S`

    def decode_request(self, body: bytes, headers: Headers) -> Decoded:
        """Decode a request; raise `InvalidRequest` if it is invalid or cannot be served."""
        ...

    def stream(self, answer: Answer) -> ClientStream:
        """Return the encoder of a streamed answer."""
        ...

    def encode_response(self, response: Response, answer: Answer) -> bytes:
        """Return the body of a complete answer."""
        ...

    def encode_error(self, error: DragomanError) -> Reply:
        """Return the HTTP response for an error before the answer has started."""
        ...

    def encode_count(self, tokens: int) -> bytes:
        """Return the body of the answer to a token count request."""
        ...


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where a request goes, and which fallbacks its encoding uses.

    The fields after `backend` are set once the upstream has rejected the request in its normal form.
    """

    model: str  # as the upstream names it
    backend: str = "gemini"
    proto_schemas: bool = False  # declare functions with `parameters`, not `parametersJsonSchema`
    trust_signatures: bool = True  # False: send no signatures from the history
    own_thinking: bool = False  # send no thinking configuration
    relaxed_schemas: bool = False  # drop schema keywords that make the schema too complex
    history_as_text: bool = False  # send calls and results of the history as text
    omit_fields: tuple[str, ...] = ()  # paths of body fields to omit, as Google reports them
    unmixed_tools: bool = False  # do not combine functions with tools that Google runs


class Encoded(msgspec.Struct, frozen=True, kw_only=True):
    """An encoded upstream request, notes about what was lost, and a factory for the decoder of its answer."""

    body: bytes
    notes: tuple[Note, ...]
    reader: Callable[[], UpstreamStream]


class UpstreamStream(Protocol):
    """Decode the bytes of an upstream answer, in chunks of any size, to events.

    The last event is always `Finished` or `Failed`.
    """

    @property
    def notes(self) -> Sequence[Note]:
        """Notes about everything that was lost so far."""
        ...

    @property
    def has_finish(self) -> bool:
        """Whether the finish reason has arrived; only token counts and signatures can follow."""
        ...

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that are complete after these bytes."""
        ...

    def close(self) -> list[Event]:
        """Return the last events, after the end of the answer."""
        ...


class UpstreamDialect(Protocol):
    """An API that the gateway calls."""

    name: str

    def ends_with_user(self, target: Target) -> bool:
        """Return whether requests to the target must end with a user turn."""
        ...

    def context_tokens(self, target: Target) -> int:
        """Return the size of the target model's context window."""
        ...

    def encode_request(self, request: Request, target: Target, new_id: Callable[[], str]) -> Encoded:
        """Encode a request; `new_id` makes ids for the tool calls in its answer."""
        ...

    def encode_count(self, request: Request, target: Target) -> bytes:
        """Return the body of a token count request."""
        ...

    def decode_count(self, body: bytes) -> int:
        """Return the number of tokens in the answer to a token count request."""
        ...

    def decode_error(self, status: int, headers: Headers, body: bytes) -> UpstreamError:
        """Return the error for an HTTP response with an error status."""
        ...


class WireLocation(msgspec.Struct):
    city: str | None = None
    region: str | None = None
    country: str | None = None
    timezone: str | None = None


def decode_location(wire: WireLocation | None) -> Location | None:
    """Return the location, or None if no field of it is set."""
    if wire is None:
        return None
    given = {name: getattr(wire, name) or "" for name in WireLocation.__struct_fields__}
    return Location(**given) if any(given.values()) else None
