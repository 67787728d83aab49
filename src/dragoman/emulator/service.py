"""The emulator as a function: `EmulatorService.handle` maps a request to an answer and does no I/O.

This is the order in which Google processes a request: route, parse, check the API key, resolve the model,
validate, generate. The ASGI app and the plain HTTP listener both call it.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from dragoman.emulator.director import (
    DIRECTED_METHODS,
    ApiRequest,
    Chunk,
    DefaultDirector,
    Director,
    ResponsePlan,
)
from dragoman.emulator.errors import NOT_FOUND_PAGE, ApiError, encode_error, field_rules_error
from dragoman.emulator.http_messages import (
    HTML_TYPE,
    Framing,
    HttpRequest,
    HttpResponse,
    json_response,
    stream_response,
)
from dragoman.emulator.model import generate_reply
from dragoman.emulator.models import EmulatedModel
from dragoman.emulator.resources import BODY_MESSAGES, ExpandedRequest, ResourceApi
from dragoman.emulator.resources.models_api import require_generative_model
from dragoman.emulator.response import STREAMED_HOP_TOKENS, UNARY_HOP_TOKENS, ResponseContext
from dragoman.emulator.response.chunks import add_cached_tokens, merge_chunks, write_chunks, write_token_count
from dragoman.emulator.routes import GeminiRoute, find_route
from dragoman.emulator.signature import Signer
from dragoman.emulator.validate import check_api_key, check_count, check_request, parse_request
from dragoman.emulator.validate.parser import parse_valid_fields

__all__ = ["EmulatorService", "HttpRequest"]

_TIER_HEADERS = (("x-gemini-service-tier", "standard"),)


class EmulatorService:
    """Answer Gemini API requests.

    `seed` is the key of the thought signatures and part of every generated id. `director` chooses the answer
    to each generate or count request; without one the built-in model answers.
    """

    def __init__(self, seed: str, director: Director | None = None) -> None:
        self._seed = seed
        self._signer = Signer(seed)
        self._director = director or DefaultDirector()
        self._resources = ResourceApi()

    def handle(self, question: HttpRequest) -> HttpResponse:
        """Return the response for a request; a `ApiError` becomes Google's error response."""
        route = find_route(question.method, question.path)
        if route is None:
            return HttpResponse(status=404, content_type=HTML_TYPE, actions=(NOT_FOUND_PAGE,))
        framing = _framing_of(route, question)
        try:
            return self._dispatch(route, question, framing)
        except ApiError as refusal:
            return encode_error(refusal, framing)

    def _dispatch(self, route: GeminiRoute, question: HttpRequest, framing: Framing) -> HttpResponse:
        # Google reports parse errors before key errors, and key errors before an unknown model.
        message = DIRECTED_METHODS.get(route.method)
        if message is None:
            body = BODY_MESSAGES.get((route.collection, route.method))
            request = parse_request(question.body, route.backend, body) if body else {}
            check_api_key(question.key, route)
            return self._resources.handle(route, question, request)
        problem: ApiError | None = None
        try:
            request = parse_request(question.body, route.backend, message)
            check_api_key(question.key, route)
        except ApiError as refusal:
            request, problem = parse_valid_fields(question.body, route.backend, message), refusal
        asked = ApiRequest(
            route=route,
            request=request,
            raw_body=question.body,
            headers=question.headers,
            framing=framing,
            error=problem,
        )
        return self._handle_directed(asked, question.now)

    def _handle_directed(self, asked: ApiRequest, now: str) -> HttpResponse:
        scene = self._director.plan_response(asked)
        try:
            if asked.error is not None and scene.validate:
                raise asked.error
            answer = self._execute_plan(scene, asked, now)
        except ApiError as refusal:
            if scene.on_rejected is not None:
                scene.on_rejected(refusal.message)
            raise
        for fault in scene.faults:
            answer = fault.change_response(answer, asked) if fault.change_response else answer
        return answer

    def _execute_plan(self, scene: ResponsePlan, asked: ApiRequest, now: str) -> HttpResponse:
        if scene.response is not None and not scene.validate:
            answer = scene.response
        elif asked.route.method == "countTokens":
            answer = json_response(self._count(asked, now))
        else:
            answer = self._frame(self._generate(scene, asked, now), asked)
        answer = scene.response or answer
        return scene.pace(answer) if scene.pace else answer

    def _frame(self, chunks: list[Chunk], asked: ApiRequest) -> HttpResponse:
        unary = asked.framing == "whole"
        answer = json_response(merge_chunks(chunks)) if unary else stream_response(chunks, asked.framing)
        return (
            answer
            if asked.route.backend.is_vertex
            else msgspec.structs.replace(answer, headers=_TIER_HEADERS)
        )

    def _generate(self, scene: ResponsePlan, asked: ApiRequest, now: str) -> list[Chunk]:
        route = asked.route
        model = require_generative_model(route)
        expanded = self._expand_resources(asked, model, now, validate=scene.validate)
        request = expanded.request
        if scene.validate:
            check_request(
                request, model, route.backend, self._signer.with_foreign_signatures(scene.signatures)
            )
        identity = f"{self._seed}|{route.backend.surface}|{route.model}|".encode() + asked.raw_body
        setting = ResponseContext(
            backend=route.backend,
            model=model,
            signer=self._signer,
            digest=hashlib.blake2b(identity, digest_size=32).digest(),
            now=now,
            hop_tokens=UNARY_HOP_TOKENS if asked.framing == "whole" else STREAMED_HOP_TOKENS,
        )
        if scene.chunks is not None:
            chunks = scene.chunks(setting)
        else:
            chunks = write_chunks(request, scene.reply or generate_reply(request), setting)
        chunks = add_cached_tokens(chunks, expanded.cached_tokens)
        for fault in scene.faults:
            chunks = fault.change_chunks(chunks) if fault.change_chunks else chunks
        return chunks

    def _expand_resources(
        self, asked: ApiRequest, model: EmulatedModel, now: str, *, validate: bool
    ) -> ExpandedRequest:
        try:
            return self._resources.expand(asked.route, asked.request, now)
        except ApiError:
            if not validate:
                return ExpandedRequest(asked.request)
            # Google reports field violations before a file or cache that does not exist.
            check_request(asked.request, model, asked.route.backend, self._signer)
            raise

    def _count(self, asked: ApiRequest, now: str) -> dict[str, Any]:
        route, request = asked.route, asked.request
        model = require_generative_model(route)
        if "generateContentRequest" in request:
            if "contents" in request:
                raise field_rules_error(
                    ["contents: only one of contents and generate_content_request can be set"],
                    "CountTokensRequest",
                )
            request = request["generateContentRequest"]
            if not request.get("model", "").startswith("models/"):
                raise field_rules_error(["model: unexpected model name format"])
        check_count(request)
        expanded = self._resources.expand(route, request, now)
        counted = write_token_count(expanded.request, model, route.backend)
        cached = sum(expanded.cached_tokens.values())
        return {**counted, "cachedContentTokenCount": cached} if cached else counted


def _framing_of(route: GeminiRoute, question: HttpRequest) -> Framing:
    if route.method != "streamGenerateContent":
        return "whole"
    return "sse" if question.alt == "sse" else "array"
