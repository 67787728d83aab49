"""Everything that reads bytes of strangers, each as a function that raises nothing but our own errors."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from dragoman import jsontext
from dragoman.config import load
from dragoman.dialects import CLIENTS
from dragoman.dialects.base import ClientDialect, Target
from dragoman.dialects.bedrock import CountClient, InvokeClient
from dragoman.dialects.gemini.client import GeminiClient
from dragoman.emulator.http_request_parser import BadRequest, ContinueExpected, RequestParser
from dragoman.errors import DragomanError
from dragoman.gateway.asgi import check_head, path_and_query, raw_head, request_headers
from dragoman.gateway.auth import sigv4
from dragoman.gateway.auth.authenticator import Authenticator, Caller
from dragoman.gateway.routes import find_route
from dragoman.http.aws_eventstream import EventStreamDecoder, encode_event, encode_event_headers
from dragoman.http.sse import SseDecoder
from dragoman.ir import Request, unseal
from dragoman.redact import Redactor
from dragoman.translation.exchange import Exchange
from tests.fuzz.client_seeds import seeds_of
from tests.unit.emulator.test_http_request_parser import CHUNKED, GET, POST

Reader = Callable[[bytes], None]

_MODEL = Target(model="gemini-3.8-flash")
_KEY = "dgm-fuzzing-key-of-sufficient-length"
_GATE = Authenticator((_KEY,), open_to_all=False, allowed_hosts=())
_REDACTOR = Redactor([_KEY])
_STREAMS = Path(__file__).parents[1] / "golden"
_ASK = {"model": "m", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
_SIGNED = b"""POST /v1/messages?a=b HTTP/1.1
host: localhost
x-amz-date: 20261115T080000Z
x-amz-content-sha256: UNSIGNED-PAYLOAD
authorization: AWS4-HMAC-SHA256 Credential=A/20261115/us/bedrock/aws4_request, SignedHeaders=host, Signature=%b

{}""" % (b"0" * 64)
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_NOW_S = 1_794_729_600.0


def request(dialect: ClientDialect) -> Reader:
    """A client's body to Google's; what was understood can be sent, and what is sent is JSON."""

    def read(data: bytes) -> None:
        exchange = Exchange(dialect, new_id=lambda: "0" * 16)
        with suppress(DragomanError):
            understood: Request = exchange.decode(data)
            sent = exchange.encode(_MODEL)
            json.loads(sent, parse_int=len)
            exchange.estimate()
            assert understood is not None

    return read


def answer(data: bytes) -> None:
    """Google's bytes to a client's, cut where the first of them says; a broken answer ends in the dialect's own error."""
    size = data[0] % 64 + 1 if data else 1
    exchange = Exchange(CLIENTS["anthropic"], new_id=map(str, itertools.count()).__next__)
    exchange.decode(json.dumps(_ASK).encode())
    exchange.encode(_MODEL)
    said = exchange.open()
    for start in range(1, len(data), size):
        said += exchange.receive(data[start : start + size])
        if exchange.failure is not None:
            break
    said += exchange.fail(exchange.failure) if exchange.failure is not None else exchange.finish()
    decoder = SseDecoder()
    for event in (*decoder.feed(said), *decoder.close()):
        json.loads(event.data, parse_int=len)


def events(data: bytes) -> None:
    size = data[0] % 16 + 1 if data else 1
    with suppress(DragomanError):
        decoder = SseDecoder(max_event_bytes=4096)
        for start in range(1, len(data), size):
            decoder.feed(data[start : start + size])
        decoder.close()


def frames(data: bytes) -> None:
    with suppress(DragomanError):
        decoder = EventStreamDecoder()
        decoder.feed(data)
        decoder.close()


def door(data: bytes) -> None:
    """A head from the wire: found or not, let in or not, its signature proven or not."""
    head, _, body = data.partition(b"\n\n")
    first, *lines = head.split(b"\n")
    words = [*first.split(b" "), b"", b""]
    path, _, query = words[1].partition(b"?")
    scope: dict[str, Any] = {
        "method": words[0].decode("latin-1"),
        "path": path.decode("utf-8", "replace"),
        "raw_path": path,
        "query_string": query,
        "headers": [
            (name.strip().lower(), value.strip())
            for name, _, value in (line.partition(b":") for line in lines)
        ],
    }
    with suppress(DragomanError):
        headers, (where, asked) = request_headers(scope), path_and_query(scope)
        _GATE.check_origin(headers)
        check_head(scope, headers)
        find_route(scope["method"], where, headers, asked)
        admitted = _GATE.authenticate(headers, asked, _NOW_S)
        _GATE.check_content_type(headers)
        if isinstance(admitted, sigv4.SigV4Claim):
            admitted = _GATE.verify_signature(admitted, raw_head(scope), body)
        assert isinstance(admitted, Caller)


def emulator(data: bytes) -> None:
    """Requests to the emulator. The first byte sets the size of the slices, which must not change the events."""
    size = data[0] % 16 + 1 if data else 1
    assert _emulator_events(data[1:], size) == _emulator_events(data[1:], max(1, len(data)))


def _emulator_events(data: bytes, size: int) -> list[Any]:
    parser, found = RequestParser(max_body_bytes=4096), list[Any]()
    for start in range(0, len(data), size):
        parser.receive_data(data[start : start + size])
        while (event := parser.next_event()) is not None:
            found.append("refused" if isinstance(event, BadRequest) else event)
    return [event for event in found if not isinstance(event, ContinueExpected)]


def settings(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    lines = [line.partition("=") for line in text.split("\n") if line.startswith(("DRAGOMAN_", "G"))]
    with suppress(DragomanError):
        load(file_text=text, file_name="f", env={}, flags={})
    with suppress(DragomanError):
        load(file_text=None, file_name="", env={name: value for name, _, value in lines}, flags={})


def words(data: bytes) -> None:
    """What is taken out of JSON leaves JSON."""
    clean = _REDACTOR.body(data)
    assert _KEY.encode() not in clean
    try:
        json.loads(data, parse_int=len)
    except (ValueError, RecursionError):
        return
    json.loads(clean, parse_int=len)


def characters(data: bytes) -> None:
    whole = jsontext.replace_lone_surrogates(data)
    assert jsontext.replace_lone_surrogates(whole) == whole
    unseal(data.decode("utf-8", "replace"))


def _dialects() -> Iterator[tuple[str, ClientDialect, str]]:
    yield from ((name, dialect, "") for name, dialect in CLIENTS.items())
    yield "gemini", GeminiClient("gemini-3.8-flash"), ""
    yield "bedrock_invoke", InvokeClient(CLIENTS["anthropic"], "m", stream=True), "/invoke"
    yield "bedrock_count", CountClient(CLIENTS["anthropic"], "m"), "/count-tokens"


def _streams() -> list[bytes]:
    return [b"\x20" + path.read_bytes() for path in sorted(_STREAMS.rglob("*.upstream.sse"))]


#: A name -> who reads, and good bytes to begin with.
DECODERS: dict[str, tuple[Reader, list[bytes]]] = {
    **{
        name: (request(dialect), seeds_of(name.partition("_")[0] if path else name, path))
        for name, dialect, path in _dialects()
    },
    "answer": (answer, _streams()),
    "sse": (events, _streams()),
    "eventstream": (frames, [encode_event(encode_event_headers("x"), b"{}") * 2]),
    "door": (door, [_SIGNED, b"GET /v1/models?key=x HTTP/1.1\nhost: localhost\nx-api-key: y\n\n"]),
    "emulator": (emulator, [b"\x05" + POST + CHUNKED + GET, b"\x00" + CHUNKED]),
    "settings": (
        settings,
        [
            b'[server]\nport = 1\nkeys = ["a"]\n[models.rules]\na = "b"\n[limits.key.day]\nrequests = 1\n',
            b"DRAGOMAN_SERVER_KEYS=a,b\nDRAGOMAN_MODELS_RULES=a=b\nGEMINI_API_KEY=x\nDRAGOMAN_LIMITS_KEY={}\n",
        ],
    ),
    "words": (words, [b'{"token": "abcdef", "a": "Authorization: Bearer x"}', f'["{_KEY}"]'.encode()]),
    "characters": (characters, [b'"\\ud83d\\ude00 \\ud83d \\\\ud83d"']),
}
