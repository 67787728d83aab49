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

    def handle(self, http_request: HttpRequest) -> HttpResponse:
        """Return the response for a request; a `ApiError` becomes Google's error response."""
        route = find_route(http_request.method, http_request.path)
        if route is None:
            return HttpResponse(status=404, content_type=HTML_TYPE, actions=(NOT_FOUND_PAGE,))
        framing = _framing_of(route, http_request)
        try:
            return self._dispatch(route, http_request, framing)
        except ApiError as refusal:
            return encode_error(refusal, framing)

    def _dispatch(self, route: GeminiRoute, http_request: HttpRequest, framing: Framing) -> HttpResponse:
        # Google reports parse errors before key errors, and key errors before an unknown model.
        message = DIRECTED_METHODS.get(route.method)
        if message is None:
            body = BODY_MESSAGES.get((route.collection, route.method))
            request = parse_request(http_request.body, route.backend, body) if body else {}
            check_api_key(http_request.key, route)
            return self._resources.handle(route, http_request, request)
        problem: ApiError | None = None
        try:
            request = parse_request(http_request.body, route.backend, message)
            check_api_key(http_request.key, route)
        except ApiError as refusal:
            request, problem = parse_valid_fields(http_request.body, route.backend, message), refusal
        api_request = ApiRequest(
            route=route,
            request=request,
            raw_body=http_request.body,
            headers=http_request.headers,
            framing=framing,
            error=problem,
        )
        return self._handle_directed(api_request, http_request.now)

    def _handle_directed(self, api_request: ApiRequest, now: str) -> HttpResponse:
        plan = self._director.plan_response(api_request)
        try:
            if api_request.error is not None and plan.validate:
                raise api_request.error
            response = self._execute_plan(plan, api_request, now)
        except ApiError as refusal:
            if plan.on_rejected is not None:
                plan.on_rejected(refusal.message)
            raise
        for fault in plan.faults:
            response = fault.change_response(response, api_request) if fault.change_response else response
        return response

    def _execute_plan(self, plan: ResponsePlan, api_request: ApiRequest, now: str) -> HttpResponse:
        if plan.response is not None and not plan.validate:
            response = plan.response
        elif api_request.route.method == "countTokens":
            response = json_response(self._count(api_request, now))
        else:
            response = self._frame(self._generate(plan, api_request, now), api_request)
        response = plan.response or response
        return plan.pace(response) if plan.pace else response

    def _frame(self, chunks: list[Chunk], api_request: ApiRequest) -> HttpResponse:
        unary = api_request.framing == "whole"
        response = (
            json_response(merge_chunks(chunks)) if unary else stream_response(chunks, api_request.framing)
        )
        return (
            response
            if api_request.route.backend.is_vertex
            else msgspec.structs.replace(response, headers=_TIER_HEADERS)
        )

    def _generate(self, plan: ResponsePlan, api_request: ApiRequest, now: str) -> list[Chunk]:
        route = api_request.route
        model = require_generative_model(route)
        expanded = self._expand_resources(api_request, model, now, validate=plan.validate)
        request = expanded.request
        if plan.validate:
            check_request(
                request, model, route.backend, self._signer.with_foreign_signatures(plan.signatures)
            )
        identity = f"{self._seed}|{route.backend.surface}|{route.model}|".encode() + api_request.raw_body
        context = ResponseContext(
            backend=route.backend,
            model=model,
            signer=self._signer,
            digest=hashlib.blake2b(identity, digest_size=32).digest(),
            now=now,
            hop_tokens=UNARY_HOP_TOKENS if api_request.framing == "whole" else STREAMED_HOP_TOKENS,
        )
        if plan.chunks is not None:
            chunks = plan.chunks(context)
        else:
            chunks = write_chunks(request, plan.reply or generate_reply(request), context)
        chunks = add_cached_tokens(chunks, expanded.cached_tokens)
        for fault in plan.faults:
            chunks = fault.change_chunks(chunks) if fault.change_chunks else chunks
        return chunks

    def _expand_resources(
        self, api_request: ApiRequest, model: EmulatedModel, now: str, *, validate: bool
    ) -> ExpandedRequest:
        try:
            return self._resources.expand(api_request.route, api_request.request, now)
        except ApiError:
            if not validate:
                return ExpandedRequest(api_request.request)
            # Google reports field violations before a file or cache that does not exist.
            check_request(api_request.request, model, api_request.route.backend, self._signer)
            raise

    def _count(self, api_request: ApiRequest, now: str) -> dict[str, Any]:
        route, request = api_request.route, api_request.request
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


def _framing_of(route: GeminiRoute, http_request: HttpRequest) -> Framing:
    if route.method != "streamGenerateContent":
        return "whole"
    return "sse" if http_request.alt == "sse" else "array"
