"""One request in, one answer out, without any I/O: the emulator as a function."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from dragoman.emulator.answer import Setting, merge_chunks, write_chunks, write_count
from dragoman.emulator.model import respond
from dragoman.emulator.models import describe, list_models, require_model
from dragoman.emulator.refusal import NOT_FOUND_PAGE, Refusal, bullets, invalid_key
from dragoman.emulator.routes import Route, find_route
from dragoman.emulator.signature import Signer
from dragoman.emulator.validate import check_count, check_request, parse

JSON_TYPE = "application/json; charset=UTF-8"
SSE_TYPE = "text/event-stream"
HTML_TYPE = "text/html; charset=UTF-8"

_INVALID_KEY = "invalid-key"

Framing = Literal["sse", "array"]


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP request as far as the emulator reads it; `now` is RFC 3339."""

    verb: str
    path: str
    alt: str = ""
    key: str = ""
    body: bytes = b""
    now: str = "2026-01-01T00:00:00Z"


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP answer; a stream has several pieces."""

    status: int
    content_type: str
    pieces: tuple[bytes, ...]


class Service:
    """Answers questions for one seed; it keeps nothing between them."""

    def __init__(self, seed: str) -> None:
        self._signer = Signer(seed)

    def answer(self, question: Question) -> Answer:
        route = find_route(question.verb, question.path)
        if route is None:
            return Answer(status=404, content_type=HTML_TYPE, pieces=(NOT_FOUND_PAGE,))
        try:
            return self._serve(route, question)
        except Refusal as refusal:
            return _refuse(refusal, route, question)

    def _serve(self, route: Route, question: Question) -> Answer:
        if route.method == "countTokens":
            return _whole(self._count(route, question))
        if route.method in ("list", "get"):
            _check_key(question)
            return _whole(_list(route) if route.method == "list" else _get(route))
        chunks = self._generate(route, question)
        if route.method == "generateContent":
            return _whole(merge_chunks(chunks))
        if question.alt == "sse":
            return Answer(status=200, content_type=SSE_TYPE, pieces=tuple(map(frame_sse, chunks)))
        return Answer(status=200, content_type=JSON_TYPE, pieces=tuple(frame_array(chunks)))

    def _generate(self, route: Route, question: Question) -> list[dict[str, Any]]:
        # Google parses before it looks at the key, and looks at the key before the model.
        request = parse(question.body, route.backend)
        _check_key(question)
        model = require_model(route.model, route.backend, route.method, route.resource)
        check_request(request, model, route.backend, self._signer)
        identity = f"{route.backend.surface}|{route.model}|".encode() + question.body
        setting = Setting(
            backend=route.backend,
            model=model,
            signer=self._signer,
            digest=hashlib.blake2b(identity, digest_size=32).digest(),
            now=question.now,
        )
        return write_chunks(request, respond(request), setting)

    def _count(self, route: Route, question: Question) -> dict[str, Any]:
        request = parse(question.body, route.backend, "CountTokensRequest")
        _check_key(question)
        require_model(route.model, route.backend, route.method, route.resource)
        if "generateContentRequest" in request:
            if "contents" in request:
                raise bullets(
                    ["contents: only one of contents and generate_content_request can be set"],
                    "CountTokensRequest",
                )
            request = request["generateContentRequest"]
            if not request.get("model", "").startswith("models/"):
                raise bullets(["model: unexpected model name format"])
        check_count(request)
        return write_count(request, route.backend)


def frame_sse(chunk: dict[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(chunk) + b"\r\n\r\n"


def frame_array(chunks: Iterable[dict[str, Any]]) -> Iterable[bytes]:
    """`[{…}`, then `\\n,\\r\\n{…}` each, then `]`."""
    for index, chunk in enumerate(chunks):
        yield (b"\n,\r\n" if index else b"[") + msgspec.json.encode(chunk)
    yield b"]"


def _check_key(question: Question) -> None:
    if question.key == _INVALID_KEY:
        raise invalid_key()


def _get(route: Route) -> dict[str, Any]:
    model = describe(require_model(route.model, route.backend, route.method, route.resource))
    return {**model, "name": route.resource} if route.backend.is_vertex else model


def _list(route: Route) -> dict[str, Any]:
    models = list_models(route.backend)
    if not route.backend.is_vertex:
        return {"models": models}
    return {"publisherModels": [{**model, "name": f"publishers/google/{model['name']}"} for model in models]}


def _whole(body: dict[str, Any]) -> Answer:
    return Answer(status=200, content_type=JSON_TYPE, pieces=(msgspec.json.encode(body),))


def _refuse(refusal: Refusal, route: Route, question: Question) -> Answer:
    """A stream that never began answers with a plain object, or an array where one was asked for."""
    body: Any = refusal.body()
    if route.method == "streamGenerateContent" and question.alt != "sse":
        body = [body]
    pretty = msgspec.json.format(msgspec.json.encode(body), indent=2)
    return Answer(status=refusal.code, content_type=JSON_TYPE, pieces=(pretty + b"\n",))
