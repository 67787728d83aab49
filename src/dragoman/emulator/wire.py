"""HTTP responses as values: a status, headers, and the actions to perform on the connection.

Also frames the chunks of a stream, as server-sent events or as one JSON array.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any, Literal

import msgspec

JSON_TYPE = "application/json; charset=UTF-8"
SSE_TYPE = "text/event-stream"
HTML_TYPE = "text/html; charset=UTF-8"

#: `whole` is one JSON object; `sse` and `array` are the two formats of a stream.
Framing = Literal["whole", "sse", "array"]


class Wait(msgspec.Struct, frozen=True):
    """Send nothing for this many seconds."""

    seconds: float


class CloseConnection(msgspec.Struct, frozen=True):
    """Close the connection in the middle of the message; `reset` sends a TCP RST instead of a FIN."""

    reset: bool = False


class RefuseConnections(msgspec.Struct, frozen=True):
    """Reset this connection and refuse new connections for this many seconds."""

    seconds: float


#: An action on the connection. Bytes are sent in one write.
ConnectionAction = bytes | Wait | CloseConnection | RefuseConnections


class HttpResponse(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP response.

    `before` is performed before the head is sent. A `streamed` response has no content-length.
    """

    status: int
    content_type: str = JSON_TYPE
    headers: tuple[tuple[str, str], ...] = ()
    actions_before_head: tuple[ConnectionAction, ...] = ()
    actions: tuple[ConnectionAction, ...] = ()
    streamed: bool = False

    @property
    def body_writes(self) -> tuple[bytes, ...]:
        """The bytes of the body, one item for each write, up to the first cut."""
        sent = takewhile(lambda act: not isinstance(act, CloseConnection | RefuseConnections), self.actions)
        return tuple(act for act in sent if isinstance(act, bytes))

    @property
    def body(self) -> bytes:
        return b"".join(self.body_writes)

    @property
    def content_length(self) -> int:
        """The content-length. It is one byte too large when the body ends in a cut.

        Otherwise a client would take the truncated body for a complete one.
        """
        promised = sum(len(act) for act in self.actions if isinstance(act, bytes))
        return promised + bool(
            self.actions and isinstance(self.actions[-1], CloseConnection | RefuseConnections)
        )


def json_response(body: Any, status: int = 200) -> HttpResponse:
    return HttpResponse(status=status, actions=(msgspec.json.encode(body),))


def stream_response(chunks: Iterable[Mapping[str, Any]], framing: Framing) -> HttpResponse:
    """Return the response that streams these chunks."""
    if framing == "sse":
        acts = tuple(map(encode_sse_event, chunks))
        return HttpResponse(status=200, content_type=SSE_TYPE, actions=acts, streamed=True)
    return HttpResponse(status=200, actions=tuple(encode_json_array(chunks)), streamed=True)


def encode_sse_event(chunk: Mapping[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(chunk) + b"\r\n\r\n"


def encode_json_array(chunks: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """Yield `[{…}`, then `\\n,\\r\\n{…}` for each further chunk, then `]`, as Google does."""
    for index, chunk in enumerate(chunks):
        yield (b"\n,\r\n" if index else b"[") + msgspec.json.encode(chunk)
    yield b"]"
