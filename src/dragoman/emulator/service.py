"""One request in, one answer out, without any I/O: the emulator as a function."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.emulator.answer import Setting, merge_chunks, write_chunks, write_count
from dragoman.emulator.direct import Asked, Chunk, Director, NoDirector, Scene
from dragoman.emulator.model import respond
from dragoman.emulator.models import describe, list_models, require_model
from dragoman.emulator.refusal import NOT_FOUND_PAGE, Refusal, bullets, invalid_key
from dragoman.emulator.routes import Route, find_route
from dragoman.emulator.signature import Signer
from dragoman.emulator.validate import check_count, check_request, parse
from dragoman.emulator.wire import HTML_TYPE, Answer, Framing, framed, whole

_INVALID_KEY = "invalid-key"
_NO_HEADERS: Mapping[str, str] = {}


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP request as far as the emulator reads it; header names are lower case, `now` is RFC 3339."""

    verb: str
    path: str
    alt: str = ""
    key: str = ""
    body: bytes = b""
    headers: Mapping[str, str] = _NO_HEADERS
    now: str = "2026-01-01T00:00:00Z"


class Service:
    """Answers questions for one seed; a director may decide what a request gets."""

    def __init__(self, seed: str, director: Director | None = None) -> None:
        self._signer = Signer(seed)
        self._director = director or NoDirector()

    def answer(self, question: Question) -> Answer:
        route = find_route(question.verb, question.path)
        if route is None:
            return Answer(status=404, content_type=HTML_TYPE, acts=(NOT_FOUND_PAGE,))
        framing = _framing(route, question)
        try:
            return self._serve(route, question, framing)
        except Refusal as refusal:
            return refuse(refusal, framing)

    def _serve(self, route: Route, question: Question, framing: Framing) -> Answer:
        if route.method in ("list", "get"):
            _check_key(question)
            return whole(_list(route) if route.method == "list" else _get(route))
        # Google parses before it looks at the key, and looks at the key before the model.
        message = "CountTokensRequest" if route.method == "countTokens" else "GenerateContentRequest"
        request = parse(question.body, route.backend, message)
        _check_key(question)
        asked = Asked(route=route, request=request, raw=question.body, headers=question.headers)
        scene = self._director.direct(asked)
        try:
            answer = self._play(scene, asked, framing, question.now)
        except Refusal as refusal:
            self._director.refused(asked, refusal.message)
            raise
        for fault in scene.faults:
            answer = fault.on_answer(answer, framing) if fault.on_answer else answer
        return answer

    def _play(self, scene: Scene, asked: Asked, framing: Framing, now: str) -> Answer:
        if asked.route.method == "countTokens":
            answer = whole(self._count(asked))
        else:
            chunks = self._generate(scene, asked, now)
            answer = whole(merge_chunks(chunks)) if framing == "whole" else framed(chunks, framing)
        answer = scene.answer or answer
        return scene.pace(answer) if scene.pace else answer

    def _generate(self, scene: Scene, asked: Asked, now: str) -> list[Chunk]:
        route, request = asked.route, asked.request
        model = require_model(route.model, route.backend, route.method, route.resource)
        if scene.validate:
            check_request(request, model, route.backend, self._signer)
        identity = f"{route.backend.surface}|{route.model}|".encode() + asked.raw
        setting = Setting(
            backend=route.backend,
            model=model,
            signer=self._signer,
            digest=hashlib.blake2b(identity, digest_size=32).digest(),
            now=now,
        )
        if scene.chunks is not None:
            chunks = scene.chunks(setting)
        else:
            chunks = write_chunks(request, scene.reply or respond(request), setting)
        for fault in scene.faults:
            chunks = fault.on_chunks(chunks) if fault.on_chunks else chunks
        return chunks

    def _count(self, asked: Asked) -> dict[str, Any]:
        route, request = asked.route, asked.request
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


def refuse(refusal: Refusal, framing: Framing) -> Answer:
    """A stream that never began answers with a plain object, or an array where one was asked for."""
    body: Any = [refusal.body()] if framing == "array" else refusal.body()
    pretty = msgspec.json.format(msgspec.json.encode(body), indent=2)
    return Answer(status=refusal.code, acts=(pretty + b"\n",))


def _framing(route: Route, question: Question) -> Framing:
    if route.method != "streamGenerateContent":
        return "whole"
    return "sse" if question.alt == "sse" else "array"


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
