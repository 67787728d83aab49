"""Wire formats, one package per vendor API, and the table of client dialects.

To add a client dialect, write a package that implements `ClientDialect` and add a row to `DIALECTS`. The row
names handlers of the gateway; `generate`, `count_tokens` and `list_models` serve every dialect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from uuid import uuid4

import msgspec

from dragoman.dialects import amazonq, anthropic, bedrock, gemini, openai_chat, openai_responses
from dragoman.dialects.amazonq import control
from dragoman.dialects.base import ClientDialect, Headers
from dragoman.dialects.gemini.client import Framing, GeminiClient

#: The method of a route that accepts every method.
ANY_METHOD = "*"
#: The header in which Amazon Q clients send `Service.Operation`; the service differs between clients.
AMZ_TARGET = "x-amz-target"

_PathParams = Mapping[str, str]


class DialectRoute(msgspec.Struct, frozen=True):
    """A route of a dialect.

    A path with parentheses is a regular expression, whose named groups are the handler's path parameters. With
    `header`, the route is for requests that have this header; its value is the path parameter `operation`.
    """

    method: str
    path: str
    handler: str  # a name in `dragoman.gateway.routes.HANDLERS`
    header: str = ""

    @property
    def is_pattern(self) -> bool:
        return "(" in self.path


class RegisteredDialect(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table: how a dialect is made, how requests of it are recognised, and its routes.

    Requests are recognised by the beginning of their path or by headers that only clients of the dialect send. That
    decides the dialect of an error for an unknown path, and of paths that several dialects have.
    """

    client: ClientDialect  # for requests whose parameters are all in the body, and for errors
    #: Makes the dialect of one request from its path parameters, headers and query, if it has parameters there.
    create: Callable[[_PathParams, Headers, Headers], ClientDialect] | None = None
    paths: re.Pattern[str] | None = None
    headers: frozenset[str] = frozenset()
    routes: tuple[DialectRoute, ...]

    @property
    def name(self) -> str:
        return self.client.name

    def recognizes(self, path: str, headers: Headers) -> bool:
        by_path = self.paths is not None and self.paths.match(path) is not None
        return by_path or not self.headers.isdisjoint(headers)


def _create_gemini(path_params: _PathParams, _headers: Headers, query: Headers) -> ClientDialect:
    return GeminiClient(path_params.get("model", ""), _gemini_framing(path_params.get("method", ""), query))


def _gemini_framing(method: str, query: Headers) -> Framing:
    if method == "countTokens":
        return "count"
    if method != "streamGenerateContent":
        return "whole"
    return "sse" if "sse" in (query.get("alt"), query.get("$alt")) else "array"


def _create_amazonq(_path_params: _PathParams, headers: Headers, _query: Headers) -> ClientDialect:
    return amazonq.AmazonQ(headers.get(AMZ_TARGET, ""), str(uuid4()))


def _create_bedrock(path_params: _PathParams, _headers: Headers, _query: Headers) -> ClientDialect:
    """InvokeModel and CountTokens requests have bodies in Anthropic's format; Converse has its own."""
    model, method = path_params.get("model", ""), path_params.get("method", "")
    if method == "count-tokens":
        return bedrock.CountClient(anthropic, model)
    if method.startswith("invoke"):
        return bedrock.InvokeClient(anthropic, model, stream=method != "invoke")
    return bedrock.ConverseClient(model, stream=method == "converse-stream")


def _operation_paths(names: Iterable[str]) -> str:
    """Match the paths of Amazon Q clients that name the operation in the path, in varying case."""
    return f"(?i:/(?P<operation>{'|'.join(names)}))"


#: AI Studio, Vertex AI with or without a project, and litellm, which omits the version.
_GEMINI_MODELS = (
    r"(?:/v1|/v1beta|/v1beta1|/v1alpha)?"
    r"(?:(?:/projects/[^/]+/locations/[^/]+)?/publishers/google)?/models"
)
_AMAZONQ_CHATS = _operation_paths(control.CHATS)


#: In order of precedence: the first dialect that recognises a request is taken, and patterns are tried in this order.
DIALECTS: tuple[RegisteredDialect, ...] = (
    RegisteredDialect(
        client=bedrock.ConverseClient(),
        create=_create_bedrock,
        paths=re.compile("/model/|/inference-profiles|/foundation-models"),
        routes=(
            DialectRoute("POST", "/model/(?P<model>.+)/(?P<method>converse)", "generate"),
            DialectRoute("POST", "/model/(?P<model>.+)/(?P<method>converse-stream)", "generate"),
            DialectRoute("POST", "/model/(?P<model>.+)/(?P<method>invoke)", "generate"),
            DialectRoute("POST", "/model/(?P<model>.+)/(?P<method>invoke-with-response-stream)", "generate"),
            DialectRoute("POST", "/model/(?P<model>.+)/(?P<method>count-tokens)", "count_tokens"),
            DialectRoute("GET", "/inference-profiles", "list_inference_profiles"),
            DialectRoute("GET", "/inference-profiles/(?P<model>.+)", "list_inference_profiles"),
            DialectRoute("GET", "/foundation-models", "list_foundation_models"),
            DialectRoute("GET", "/foundation-models/(?P<model>.+)", "list_foundation_models"),
        ),
    ),
    RegisteredDialect(
        client=anthropic,
        paths=re.compile("/v1/messages|/api/"),
        headers=frozenset({"anthropic-version"}),
        routes=(
            DialectRoute("POST", "/v1/messages", "generate"),
            DialectRoute("POST", "/v1/messages/count_tokens", "count_tokens"),
            DialectRoute("POST", "/api/(?:event_logging|claude_code|claude_cli)/.*", "empty_object"),
        ),
    ),
    RegisteredDialect(
        client=GeminiClient(),
        create=_create_gemini,
        paths=re.compile("/v1beta|/v1alpha|[^:]*:"),  # no other path has a colon
        headers=frozenset({"x-goog-api-key"}),
        routes=(
            DialectRoute(
                "POST", _GEMINI_MODELS + "/(?P<model>[^/:]+):(?P<method>generateContent)", "generate"
            ),
            DialectRoute(
                "POST", _GEMINI_MODELS + "/(?P<model>[^/:]+):(?P<method>streamGenerateContent)", "generate"
            ),
            DialectRoute(
                "POST", _GEMINI_MODELS + "/(?P<model>[^/:]+):(?P<method>countTokens)", "count_tokens"
            ),
            DialectRoute("GET", _GEMINI_MODELS + "(?:/(?P<model>[^/:]+))?", "list_models"),
            DialectRoute("POST", "/v1/gemini", "generate_in_gemini_conversation"),
        ),
    ),
    RegisteredDialect(
        client=amazonq.AmazonQ(),
        create=_create_amazonq,
        paths=re.compile(_AMAZONQ_CHATS + r"\Z"),
        headers=frozenset({AMZ_TARGET, "amz-sdk-invocation-id"}),
        routes=(
            DialectRoute(ANY_METHOD, "/", "run_amazonq_operation", header=AMZ_TARGET),
            DialectRoute("POST", _AMAZONQ_CHATS, "run_amazonq_operation"),
            DialectRoute(ANY_METHOD, _operation_paths(control.CONTROL), "run_amazonq_operation"),
        ),
    ),
    RegisteredDialect(
        client=openai_chat,
        paths=re.compile(""),  # every path that no dialect above recognises
        routes=(DialectRoute("POST", "/v1/chat/completions", "generate"),),
    ),
    RegisteredDialect(
        client=openai_responses,
        routes=(
            DialectRoute("POST", "/v1/responses", "create_response"),
            DialectRoute("GET", "/v1/responses", "upgrade_required"),
            DialectRoute("POST", "/v1/responses/compact", "compact_response"),
            DialectRoute("POST", "/v1/responses/input_tokens", "count_input_tokens"),
            DialectRoute("GET", "/v1/responses/(?P<id>[^/]+)", "get_response"),
            DialectRoute("DELETE", "/v1/responses/(?P<id>[^/]+)", "delete_response"),
            DialectRoute("POST", "/v1/responses/(?P<id>[^/]+)/cancel", "cancel_response"),
            DialectRoute("GET", "/v1/responses/(?P<id>[^/]+)/input_items", "list_input_items"),
            DialectRoute("POST", "/v1/conversations", "create_conversation"),
            DialectRoute("GET", "/v1/conversations/(?P<id>[^/]+)", "get_conversation"),
            DialectRoute("POST", "/v1/conversations/(?P<id>[^/]+)", "update_conversation"),
            DialectRoute("DELETE", "/v1/conversations/(?P<id>[^/]+)", "delete_conversation"),
            DialectRoute("POST", "/v1/conversations/(?P<id>[^/]+)/items", "add_items"),
            DialectRoute("GET", "/v1/conversations/(?P<id>[^/]+)/items", "list_items"),
            DialectRoute("GET", "/v1/conversations/(?P<id>[^/]+)/items/(?P<item>[^/]+)", "get_item"),
            DialectRoute("DELETE", "/v1/conversations/(?P<id>[^/]+)/items/(?P<item>[^/]+)", "delete_item"),
        ),
    ),
)

#: Dialect objects by name. Gemini's is missing: it is the format that the others are translated to.
CLIENTS: dict[str, ClientDialect] = {
    row.name: row.client for row in DIALECTS if not isinstance(row.client, GeminiClient)
}


def recognize_dialect(path: str, headers: Headers) -> ClientDialect:
    """Return the dialect of a request by its path and headers alone."""
    return next(row.client for row in DIALECTS if row.recognizes(path, headers))


__all__ = [
    "CLIENTS",
    "DIALECTS",
    "amazonq",
    "anthropic",
    "bedrock",
    "gemini",
    "openai_chat",
    "openai_responses",
    "recognize_dialect",
]
