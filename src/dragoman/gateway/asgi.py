"""ASGI: its types, and the parsing and checking of a request's head. `response_writer` has the other direction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

from dragoman.errors import InvalidRequest
from dragoman.gateway.auth.sigv4 import RawHead

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]

_KEY_PREFIX = "/key/"
_MAX_QUERY_FIELDS = 100
#: Headers that may appear only once, because they decide the caller, the target or the framing of the body.
#: The HTTP server never passes on a content-length beside a transfer-encoding (RFC 9112, section 6.3).
_SINGLE_VALUED = (
    *(b"host", b"origin", b"sec-fetch-site", b"content-type", b"content-length", b"transfer-encoding"),
    *(b"authorization", b"x-api-key", b"x-goog-api-key", b"x-amz-security-token", b"x-amz-target"),
)


class ClientDisconnect(Exception):
    """The client closed the connection before the response was complete."""


class IncompleteBody(ClientDisconnect):
    """The client disconnected before its request body was complete, or sent a malformed body."""


def check_head(scope: Scope, headers: Mapping[str, str]) -> None:
    """Raise InvalidRequest for a request head that a proxy in front of us may interpret differently.

    `headers` is the result of `request_headers(scope)`. Repeated critical headers, compressed bodies and queries
    with too many fields are rejected.
    """
    if _has_too_many_fields(scope.get("query_string", b"")):
        raise InvalidRequest(f"the query has more than {_MAX_QUERY_FIELDS} fields")
    raw = scope["headers"]
    if len(headers) != len(raw):  # some header is repeated
        names = [name for name, _ in raw]
        twice = next((name for name in _SINGLE_VALUED if names.count(name) > 1), b"")
        if twice:
            raise InvalidRequest(f"the header {twice.decode()} may come only once")
    if "content-encoding" in headers:
        codings = [value.lower() for name, value in raw if name == b"content-encoding"]
        if any(coding not in (b"", b"identity") for coding in codings):
            raise InvalidRequest("compressed bodies are not taken here: leave out content-encoding")


def request_headers(scope: Scope) -> dict[str, str]:
    """Return the request headers. ASGI gives lower-case names; the last value of a repeated header wins."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def query_fields(scope: Scope) -> dict[str, str]:
    """Return the query fields, or none if there are so many that `check_head` rejects the request."""
    raw: bytes = scope.get("query_string", b"")
    if not raw or _has_too_many_fields(raw):
        return {}
    return dict(parse_qsl(raw.decode("latin-1"), keep_blank_values=True))


def _has_too_many_fields(raw: bytes) -> bool:
    return raw.count(b"&") >= _MAX_QUERY_FIELDS


def path_and_query(scope: Scope) -> tuple[str, dict[str, str]]:
    """Return path and query. `/key/KEY/rest` is read as `/rest?key=KEY`.

    That form serves clients whose base URL is configurable but whose credentials are not. A key that contains
    a slash must be percent-encoded twice, because the HTTP server decodes the path once.
    """
    path, query = scope["path"], query_fields(scope)
    if not path.startswith(_KEY_PREFIX):
        return path, query
    key, _, rest = path.removeprefix(_KEY_PREFIX).partition("/")
    return "/" + rest.lstrip("/"), query | {"key": unquote(key)}


def raw_head(scope: Scope) -> RawHead:
    """Return the request head in the raw form that a SigV4 signature covers."""
    path = scope.get("raw_path") or quote(scope["path"]).encode()
    return RawHead(scope["method"], path, scope.get("query_string", b""), scope["headers"])
