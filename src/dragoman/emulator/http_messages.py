"""HTTP requests and responses as values, shared by the ASGI application and the HTTP server.

A response is a status, headers and the actions to perform on the connection. This module also frames the chunks of
a stream, as server-sent events or as one JSON array, and refuses requests that come from web pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any, Literal
from urllib.parse import parse_qs

import msgspec

from dragoman.config import LOOPBACK_NAMES

_NO_FIELDS: Mapping[str, str] = {}


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP request.

    Header names are in lower case, `query` has the last value of each parameter, and `now` is an RFC 3339
    timestamp.
    """

    method: str
    path: str
    alt: str = ""
    key: str = ""
    body: bytes = b""
    headers: Mapping[str, str] = _NO_FIELDS
    query: Mapping[str, str] = _NO_FIELDS
    now: str = "2026-01-01T00:00:00Z"


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

    `actions_before_head` are performed before the head is sent. A `streamed` response has no content-length.
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
        sent = takewhile(
            lambda action: not isinstance(action, CloseConnection | RefuseConnections), self.actions
        )
        return tuple(action for action in sent if isinstance(action, bytes))

    @property
    def body(self) -> bytes:
        return b"".join(self.body_writes)

    @property
    def content_length(self) -> int:
        """The content-length. It is one byte too large when the body ends in a cut.

        Otherwise a client would take the truncated body for a complete one.
        """
        promised = sum(len(action) for action in self.actions if isinstance(action, bytes))
        return promised + bool(
            self.actions and isinstance(self.actions[-1], CloseConnection | RefuseConnections)
        )


def json_response(body: Any, status: int = 200) -> HttpResponse:
    return HttpResponse(status=status, actions=(msgspec.json.encode(body),))


def stream_response(chunks: Iterable[Mapping[str, Any]], framing: Framing) -> HttpResponse:
    """Return the response that streams these chunks."""
    if framing == "sse":
        actions = tuple(map(encode_sse_event, chunks))
        return HttpResponse(status=200, content_type=SSE_TYPE, actions=actions, streamed=True)
    return HttpResponse(status=200, actions=tuple(encode_json_array(chunks)), streamed=True)


def encode_sse_event(chunk: Mapping[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(chunk) + b"\r\n\r\n"


def encode_json_array(chunks: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """Yield `[{…}`, then `\\n,\\r\\n{…}` for each further chunk, then `]`, as Google does."""
    for index, chunk in enumerate(chunks):
        yield (b"\n,\r\n" if index else b"[") + msgspec.json.encode(chunk)
    yield b"]"


_GOOGLE_HOSTS = ".googleapis.com"  # programs that reach the emulator through a proxy keep Google's name


def make_request(
    verb: str, path: str, query: str, headers: Iterable[tuple[str, str]], body: bytes
) -> HttpRequest:
    """`path` is percent-decoded. The values of a repeated header are joined with commas (RFC 9110 section 5.3)."""
    fields: dict[str, str] = {}
    for name, value in headers:
        name = name.lower()
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    params = {name: values[-1] for name, values in parse_qs(query, keep_blank_values=True).items()}
    return HttpRequest(
        method=verb,
        path=path,
        alt=params.get("alt", ""),
        key=fields.get("x-goog-api-key", "") or params.get("key", ""),
        body=body,
        headers=fields,
        query=params,
        now=datetime.now(UTC).isoformat().replace("+00:00", "Z"),
    )


def is_cross_site(http_request: HttpRequest) -> bool:
    """Whether a web page sent this: from another origin, or through a name made to point here (DNS rebinding)."""
    headers = http_request.headers
    host = headers.get("host", "localhost").lower()
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    known = name in LOOPBACK_NAMES or name.endswith(_GOOGLE_HOSTS)
    return not known or "origin" in headers or headers.get("sec-fetch-site", "none") != "none"


def base_url_of(host: str, port: int) -> str:
    """The base URL of a server."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}"


def header_fields(response: HttpResponse) -> list[tuple[str, str]]:
    """The header fields of an answer. A stream gets no content-length; one that the answer sets itself is kept."""
    fields = [("content-type", response.content_type), *response.headers]
    if not response.streamed and all(name.lower() != "content-length" for name, _ in response.headers):
        fields.append(("content-length", str(response.content_length)))
    return fields
