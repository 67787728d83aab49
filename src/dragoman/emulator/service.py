"""One request in, one answer out, without any I/O: the emulator as a function."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.emulator.answer.chunks import Setting, merge_chunks, write_chunks, write_count
from dragoman.emulator.answer.setting import STREAMED_HOP_TOKENS, WHOLE_HOP_TOKENS
from dragoman.emulator.direct import Asked, Chunk, Director, NoDirector, Scene
from dragoman.emulator.model.respond import respond
from dragoman.emulator.models import Model
from dragoman.emulator.question import Question
from dragoman.emulator.refusal import NOT_FOUND_PAGE, Refusal, bullets
from dragoman.emulator.resources.catalog import require_speaker
from dragoman.emulator.resources.desk import BODIES, Desk, Expanded
from dragoman.emulator.resources.usage import count_cached
from dragoman.emulator.routes import Method, Route, find_route
from dragoman.emulator.signature import Signer
from dragoman.emulator.validate import check_count, check_request, parse
from dragoman.emulator.validate.keys import check_key
from dragoman.emulator.validate.salvage import salvage
from dragoman.emulator.wire import HTML_TYPE, Answer, Framing, framed, whole

__all__ = ["Question", "Service", "refuse"]

#: What a director may decide about; everything else is only looked up.
_GENERATING: Mapping[Method, str] = {
    "generateContent": "GenerateContentRequest",
    "streamGenerateContent": "GenerateContentRequest",
    "countTokens": "CountTokensRequest",
}


class Service:
    """Answers questions for one seed; a director may decide what a request gets."""

    def __init__(self, seed: str, director: Director | None = None) -> None:
        self._signer = Signer(seed)
        self._director = director or NoDirector()
        self._desk = Desk()

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
        # Google parses before it looks at the key, and looks at the key before the model.
        message = _GENERATING.get(route.method) or BODIES.get((route.collection, route.method))
        problem: Refusal | None = None
        try:
            request = parse(question.body, route.backend, message) if message else {}
            check_key(question.key, route)
        except Refusal as refusal:
            if route.method not in _GENERATING:
                raise
            request, problem = salvage(question.body, route.backend, _GENERATING[route.method]), refusal
        if route.method not in _GENERATING:
            return self._desk.answer(route, question, request)
        asked = Asked(
            route=route,
            request=request,
            raw=question.body,
            headers=question.headers,
            framing=framing,
            problem=problem,
        )
        scene = self._director.direct(asked)
        try:
            if problem is not None and (scene.validate or scene.answer is None):
                raise problem
            answer = self._play(scene, asked, framing, question.now)
        except Refusal as refusal:
            self._director.refused(asked, refusal.message)
            raise
        for fault in scene.faults:
            answer = fault.on_answer(answer, asked) if fault.on_answer else answer
        return answer

    def _play(self, scene: Scene, asked: Asked, framing: Framing, now: str) -> Answer:
        if scene.answer is not None and not scene.validate:
            answer = scene.answer
        elif asked.route.method == "countTokens":
            answer = whole(self._count(asked, now))
        else:
            chunks = self._generate(scene, asked, now)
            answer = whole(merge_chunks(chunks)) if framing == "whole" else framed(chunks, framing)
        answer = scene.answer or answer
        return scene.pace(answer) if scene.pace else answer

    def _generate(self, scene: Scene, asked: Asked, now: str) -> list[Chunk]:
        route = asked.route
        model = require_speaker(route)
        expanded = self._expand(asked, model, now)
        request = expanded.request
        if scene.validate:
            check_request(request, model, route.backend, self._signer.trusting(scene.signatures))
        identity = f"{route.backend.surface}|{route.model}|".encode() + asked.raw
        setting = Setting(
            backend=route.backend,
            model=model,
            signer=self._signer,
            digest=hashlib.blake2b(identity, digest_size=32).digest(),
            now=now,
            hop_tokens=WHOLE_HOP_TOKENS if asked.framing == "whole" else STREAMED_HOP_TOKENS,
        )
        if scene.chunks is not None:
            chunks = scene.chunks(setting)
        else:
            chunks = write_chunks(request, scene.reply or respond(request), setting)
        chunks = count_cached(chunks, expanded.cached)
        for fault in scene.faults:
            chunks = fault.on_chunks(chunks) if fault.on_chunks else chunks
        return chunks

    def _expand(self, asked: Asked, model: Model, now: str) -> Expanded:
        try:
            return self._desk.expand(asked.route, asked.request, now)
        except Refusal:
            # What is wrong with the fields is said before what is wrong with the things they name.
            check_request(asked.request, model, asked.route.backend, self._signer)
            raise

    def _count(self, asked: Asked, now: str) -> dict[str, Any]:
        route, request = asked.route, asked.request
        require_speaker(route)
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
        expanded = self._desk.expand(route, request, now)
        counted = write_count(expanded.request, route.backend)
        cached = sum(expanded.cached.values())
        return {**counted, "cachedContentTokenCount": cached} if cached else counted


def refuse(refusal: Refusal, framing: Framing) -> Answer:
    """A stream that never began answers with a plain object, or an array where one was asked for."""
    body: Any = [refusal.body()] if framing == "array" else refusal.body()
    pretty = msgspec.json.format(msgspec.json.encode(body), indent=2)
    return Answer(status=refusal.code, acts=(pretty + b"\n",))


def _framing(route: Route, question: Question) -> Framing:
    if route.method != "streamGenerateContent":
        return "whole"
    return "sse" if question.alt == "sse" else "array"
