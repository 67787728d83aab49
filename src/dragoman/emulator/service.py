"""The emulator as a function: `Service.answer` maps a request to an answer and does no I/O.

This is the order in which Google processes a request: route, parse, check the API key, resolve the model,
validate, generate. The ASGI app and the plain HTTP listener both call it.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from dragoman.emulator.answer.chunks import add_cached, write_chunks, write_count
from dragoman.emulator.answer.fold import merge_chunks
from dragoman.emulator.answer.setting import STREAMED_HOP_TOKENS, WHOLE_HOP_TOKENS, Setting
from dragoman.emulator.direct import DIRECTED, Asked, Chunk, Director, NoDirector, Scene
from dragoman.emulator.model.respond import respond
from dragoman.emulator.models import Model
from dragoman.emulator.question import Question
from dragoman.emulator.refusal import NOT_FOUND_PAGE, Refusal, bullets, refuse
from dragoman.emulator.resources.catalog import require_speaker
from dragoman.emulator.resources.desk import BODIES, Desk, Expanded
from dragoman.emulator.routes import Route, find_route
from dragoman.emulator.signature import Signer
from dragoman.emulator.validate import check_count, check_request, parse
from dragoman.emulator.validate.keys import check_key
from dragoman.emulator.validate.salvage import salvage
from dragoman.emulator.wire import HTML_TYPE, Answer, Framing, framed, whole

__all__ = ["Question", "Service"]

_TIER = (("x-gemini-service-tier", "standard"),)


class Service:
    """Answer Gemini API requests.

    `seed` is the key of the thought signatures and part of every generated id. `director` chooses the answer
    to each generate or count request; without one the built-in model answers.
    """

    def __init__(self, seed: str, director: Director | None = None) -> None:
        self._seed = seed
        self._signer = Signer(seed)
        self._director = director or NoDirector()
        self._desk = Desk()

    def answer(self, question: Question) -> Answer:
        """Return the response for a request; a `Refusal` becomes Google's error response."""
        route = find_route(question.verb, question.path)
        if route is None:
            return Answer(status=404, content_type=HTML_TYPE, acts=(NOT_FOUND_PAGE,))
        framing = _framing(route, question)
        try:
            return self._serve(route, question, framing)
        except Refusal as refusal:
            return refuse(refusal, framing)

    def _serve(self, route: Route, question: Question, framing: Framing) -> Answer:
        # Google reports parse errors before key errors, and key errors before an unknown model.
        message = DIRECTED.get(route.method)
        if message is None:
            body = BODIES.get((route.collection, route.method))
            request = parse(question.body, route.backend, body) if body else {}
            check_key(question.key, route)
            return self._desk.answer(route, question, request)
        problem: Refusal | None = None
        try:
            request = parse(question.body, route.backend, message)
            check_key(question.key, route)
        except Refusal as refusal:
            request, problem = salvage(question.body, route.backend, message), refusal
        asked = Asked(
            route=route,
            request=request,
            raw=question.body,
            headers=question.headers,
            framing=framing,
            problem=problem,
        )
        return self._direct(asked, question.now)

    def _direct(self, asked: Asked, now: str) -> Answer:
        scene = self._director.direct(asked)
        try:
            if asked.problem is not None and scene.validate:
                raise asked.problem
            answer = self._play(scene, asked, now)
        except Refusal as refusal:
            if scene.on_refused is not None:
                scene.on_refused(refusal.message)
            raise
        for fault in scene.faults:
            answer = fault.on_answer(answer, asked) if fault.on_answer else answer
        return answer

    def _play(self, scene: Scene, asked: Asked, now: str) -> Answer:
        if scene.answer is not None and not scene.validate:
            answer = scene.answer
        elif asked.route.method == "countTokens":
            answer = whole(self._count(asked, now))
        else:
            answer = self._frame(self._generate(scene, asked, now), asked)
        answer = scene.answer or answer
        return scene.pace(answer) if scene.pace else answer

    def _frame(self, chunks: list[Chunk], asked: Asked) -> Answer:
        unary = asked.framing == "whole"
        answer = whole(merge_chunks(chunks)) if unary else framed(chunks, asked.framing)
        return answer if asked.route.backend.is_vertex else msgspec.structs.replace(answer, headers=_TIER)

    def _generate(self, scene: Scene, asked: Asked, now: str) -> list[Chunk]:
        route = asked.route
        model = require_speaker(route)
        expanded = self._expand(asked, model, now, validate=scene.validate)
        request = expanded.request
        if scene.validate:
            check_request(request, model, route.backend, self._signer.trusting(scene.signatures))
        identity = f"{self._seed}|{route.backend.surface}|{route.model}|".encode() + asked.raw
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
        chunks = add_cached(chunks, expanded.cached)
        for fault in scene.faults:
            chunks = fault.on_chunks(chunks) if fault.on_chunks else chunks
        return chunks

    def _expand(self, asked: Asked, model: Model, now: str, *, validate: bool) -> Expanded:
        try:
            return self._desk.expand(asked.route, asked.request, now)
        except Refusal:
            if not validate:
                return Expanded(asked.request)
            # Google reports field violations before a file or cache that does not exist.
            check_request(asked.request, model, asked.route.backend, self._signer)
            raise

    def _count(self, asked: Asked, now: str) -> dict[str, Any]:
        route, request = asked.route, asked.request
        model = require_speaker(route)
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
        counted = write_count(expanded.request, model, route.backend)
        cached = sum(expanded.cached.values())
        return {**counted, "cachedContentTokenCount": cached} if cached else counted


def _framing(route: Route, question: Question) -> Framing:
    if route.method != "streamGenerateContent":
        return "whole"
    return "sse" if question.alt == "sse" else "array"
