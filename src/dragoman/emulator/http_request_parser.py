"""HTTP/1.1 requests parsed with httptools (llhttp), without I/O.

llhttp is strict by default. It refuses most of what two parsers could read differently; `_check_headers` refuses the
rest. httptools has no limits, so this module counts the bytes of heads, bodies, chunk extensions and trailers.
"""

from __future__ import annotations

from collections import deque

import httptools
import msgspec

MAX_HEAD_BYTES = 64 * 1024
MAX_HEADERS = 100
MAX_BODY_BYTES = 100 * 1024 * 1024

_FEED_BYTES = 4096  # how much the parser gets at once; limits how many requests come out of it at once
_UNSUPPORTED_VERSION = "the emulator speaks HTTP/1.1"
#: Reasons of llhttp; the first one is for the preface of HTTP/2.
_VERSION_ERRORS = ("Pause on PRI/Upgrade", "Invalid HTTP version")
_SINGLE_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "expect"})

Headers = tuple[tuple[str, str], ...]


class ParsedHttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A complete request. Header names are in lower case."""

    method: str
    target: str
    headers: Headers
    http_version: str
    keep_alive: bool
    body: bytes = b""


class ContinueExpected(msgspec.Struct, frozen=True):
    """The client sends the body after it has received `100 Continue`."""


class BadRequest(msgspec.Struct, frozen=True):
    """The request is invalid or too large. The parser ignores everything after it."""

    status: int
    reason: str


ParserEvent = ParsedHttpRequest | ContinueExpected | BadRequest


class _BadRequestError(Exception):
    """Raised in a callback of the parser to end the parsing."""

    def __init__(self, reason: str, status: int = 400) -> None:
        super().__init__(reason)
        self.event = BadRequest(status, reason)


class RequestParser:
    """Turns bytes into events, in this order: ([Continue] Request)* [BadRequest].

    `receive_data` only stores the bytes. `next_event` parses no more of them than it needs for the next event, so
    pipelined requests wait as unparsed bytes, which the caller can limit.
    """

    def __init__(self, *, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._max_body_bytes = max_body_bytes
        self._parser = httptools.HttpRequestParser(self)
        self._data = b""
        self._position = 0  # of the first unparsed byte in `_data`
        self._events: deque[ParserEvent] = deque()
        self._failed = False
        self._head: ParsedHttpRequest | None = None  # of a request whose body is not complete
        self._target = bytearray()
        self._headers: list[tuple[str, str]] = []
        self._head_bytes = 0
        self._content_length = 0
        self._body = bytearray()
        self._expects_continue = False
        self._bytes_without_body = 0  # fed since the last part of a body or the last complete request

    @property
    def unparsed_bytes(self) -> int:
        return len(self._data) - self._position

    def receive_data(self, data: bytes) -> None:
        if not self._failed:
            self._data = self._data[self._position :] + data
            self._position = 0

    def next_event(self) -> ParserEvent | None:
        """None: the parser needs more data."""
        while not self._events:
            if self.unparsed_bytes:
                self._feed()
            elif self._expects_continue:
                self._expects_continue = False
                return ContinueExpected()
            else:
                return None
        return self._events.popleft()

    def _feed(self) -> None:
        # A body with a known length contains no other request, so the parser gets all of it.
        size = max(_FEED_BYTES, self._content_length - len(self._body))
        part = memoryview(self._data)[self._position : self._position + size]
        self._position += len(part)
        self._bytes_without_body += len(part)
        try:
            self._parser.feed_data(part)
            if self._bytes_without_body > MAX_HEAD_BYTES:
                raise _head_too_large()
        except httptools.HttpParserUpgrade as upgrade:
            self._position += upgrade.args[0] - len(part)
            self._ignore_upgrade()
        except _BadRequestError as refused:
            self._fail(refused.event)
        except httptools.HttpParserCallbackError as error:
            if not isinstance(error.__context__, _BadRequestError):
                raise
            self._fail(error.__context__.event)
        except httptools.HttpParserError as error:
            reason = str(error)
            if reason in _VERSION_ERRORS:
                self._fail(BadRequest(505, _UNSUPPORTED_VERSION))
            else:
                self._fail(BadRequest(400, reason))

    def _fail(self, event: BadRequest) -> None:
        self._failed = True
        self._expects_continue = False
        self._data, self._position = b"", 0
        self._events.append(event)

    def _ignore_upgrade(self) -> None:
        """Continue with HTTP/1.1, which RFC 9110 section 7.8 allows.

        llhttp takes everything after the head for another protocol. A new parser gets a head with the same framing
        and then reads the body.
        """
        assert self._head is not None  # noqa: S101 (llhttp reports an upgrade after the head)
        framing = [
            f"{name}: {value}\r\n"
            for name, value in self._head.headers
            if name in ("content-length", "transfer-encoding")
        ]
        self._parser = httptools.HttpRequestParser(self)
        self._parser.feed_data(f"POST / HTTP/1.1\r\n{''.join(framing)}\r\n".encode())

    # Callbacks of httptools. While `_head` is set, the parser reads trailers or the head that `_ignore_upgrade` repeats.

    def on_message_begin(self) -> None:
        if self._head is None:
            self._target.clear()
            self._headers.clear()
            self._head_bytes = 0

    def on_url(self, url: bytes) -> None:
        if self._head is None:
            self._count_head_bytes(len(url))
            self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head is None:
            self._count_head_bytes(len(name) + len(value) + len(":\r\n"))
            if len(self._headers) == MAX_HEADERS:
                raise _BadRequestError(f"there are more than {MAX_HEADERS} headers", 431)
            self._headers.append((name.decode("ascii").lower(), value.decode("latin-1").rstrip(" \t")))

    def on_headers_complete(self) -> None:
        if self._head is None:
            self._head = ParsedHttpRequest(
                method=self._parser.get_method().decode("ascii"),
                target=self._target.decode("latin-1"),
                headers=tuple(self._headers),
                http_version=self._parser.get_http_version(),
                keep_alive=self._parser.should_keep_alive(),
            )
            headers = _check_headers(self._head)
            self._content_length = int(headers.get("content-length", 0))
            self._check_body_bytes(self._content_length)
            self._expects_continue = bool(headers.get("expect")) and self._head.http_version == "1.1"

    def on_body(self, body: bytes) -> None:
        self._expects_continue = False
        self._bytes_without_body = 0
        self._check_body_bytes(len(self._body) + len(body))
        self._body += body

    def on_message_complete(self) -> None:
        if self._parser.should_upgrade():
            return
        assert self._head is not None  # noqa: S101 (a message ends after its head)
        # Asked again, because llhttp also obeys `connection: close` in a trailer.
        keep_alive = self._head.keep_alive and self._parser.should_keep_alive()
        self._events.append(
            msgspec.structs.replace(self._head, body=bytes(self._body), keep_alive=keep_alive)
        )
        self._head = None
        self._content_length = 0
        self._body = bytearray()
        self._expects_continue = False
        self._bytes_without_body = 0

    def _count_head_bytes(self, number: int) -> None:
        self._head_bytes += number
        if self._head_bytes > MAX_HEAD_BYTES:
            raise _head_too_large()

    def _check_body_bytes(self, number: int) -> None:
        if number > self._max_body_bytes:
            raise _BadRequestError(f"the body is longer than {self._max_body_bytes} bytes", 413)


def _head_too_large() -> _BadRequestError:
    return _BadRequestError(f"the head is longer than {MAX_HEAD_BYTES} bytes", 431)


def _check_headers(request: ParsedHttpRequest) -> dict[str, str]:
    """Refuse what llhttp accepts and another parser could read differently; return the headers of `_SINGLE_HEADERS`."""
    if request.http_version not in ("1.0", "1.1"):
        raise _BadRequestError(_UNSUPPORTED_VERSION, 505)
    headers: dict[str, str] = {}
    for name, value in request.headers:
        if name in _SINGLE_HEADERS:
            if name in headers:
                raise _BadRequestError(f"there is more than one {name} header")
            headers[name] = value
    if request.http_version == "1.1" and "host" not in headers:
        raise _BadRequestError("the host header is missing")
    if "transfer-encoding" in headers:
        if request.http_version == "1.0":
            raise _BadRequestError("HTTP/1.0 has no transfer-encoding")
        if headers["transfer-encoding"].lower() != "chunked":
            raise _BadRequestError("the emulator knows only the transfer-encoding chunked", 501)
    if headers.get("expect", "").lower() not in ("", "100-continue"):
        raise _BadRequestError("the emulator knows only the expectation 100-continue", 417)
    return headers
