"""The extension point of the service: a director decides how each request is answered.

A director can replace the model's reply, the chunks, or the whole response. The script player and the fault
injector are directors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from dragoman.emulator.errors import ApiError
from dragoman.emulator.http_messages import Framing, HttpResponse
from dragoman.emulator.model import ModelReply
from dragoman.emulator.response import ResponseContext
from dragoman.emulator.routes import GeminiRoute, Method

Chunk = dict[str, Any]

#: The methods that a director decides about, with the message type of their body.
DIRECTED_METHODS: Mapping[Method, str] = {
    "generateContent": "GenerateContentRequest",
    "streamGenerateContent": "GenerateContentRequest",
    "countTokens": "CountTokensRequest",
}


class ApiRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request as a director sees it: `raw_body` is the body, `request` the parsed canonical form.

    `error` is the error of the parser or of the key check, if there is one. `request` then has what could
    be recovered from the body, and only a scene with `validate=False` is played; any other scene answers with
    the error.
    """

    route: GeminiRoute
    request: Mapping[str, Any]
    raw_body: bytes
    headers: Mapping[str, str]
    framing: Framing = "whole"
    error: ApiError | None = None


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A fault to inject: it changes the chunks before they are framed, the framed response, or both."""

    name: str
    change_chunks: Callable[[list[Chunk]], list[Chunk]] | None = None
    change_response: Callable[[HttpResponse, ApiRequest], HttpResponse] | None = None


class ResponsePlan(msgspec.Struct, frozen=True, kw_only=True):
    """How one request is answered. The emulator supplies what is left out.

    `response` replaces the whole response. `chunks` builds the chunks of the stream. `reply` replaces the reply
    of the model. `pace` transforms the framed response, for example to slow it down. Faults are applied last.
    `validate=False` skips validation of the request. `signatures` are thought signatures of other issuers
    that are accepted. `on_rejected` is called with the error message when the request was rejected, which
    means that the scene was not played.
    """

    response: HttpResponse | None = None
    chunks: Callable[[ResponseContext], list[Chunk]] | None = None
    reply: ModelReply | None = None
    pace: Callable[[HttpResponse], HttpResponse] | None = None
    faults: Sequence[Fault] = ()
    validate: bool = True
    signatures: frozenset[bytes] = frozenset()
    on_rejected: Callable[[str], None] | None = None


class Director(Protocol):
    """Chooses the scene for each generateContent, streamGenerateContent and countTokens request.

    It is called once per request, after parsing and before validation. A `ApiError` that it raises becomes the
    response. Requests for files, caches, models and embeddings do not reach it.
    """

    def plan_response(self, api_request: ApiRequest) -> ResponsePlan: ...


class DefaultDirector:
    """The default director: the built-in model answers every request."""

    def plan_response(self, api_request: ApiRequest) -> ResponsePlan:
        del api_request
        return ResponsePlan()
