"""The routing tables: exact paths first, then patterns, each with its handler, dialect and access rules."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cache
from typing import Literal
from uuid import uuid4

import msgspec

from dragoman.dialects import CLIENTS
from dragoman.dialects.amazonq import AmazonQ, control
from dragoman.dialects.base import ClientDialect, Reply
from dragoman.dialects.bedrock import ConverseClient, CountClient, InvokeClient
from dragoman.dialects.gemini.client import Framing, GeminiClient
from dragoman.errors import DragomanError
from dragoman.gateway.asgi import JSON_HEADERS, ResponseWriter
from dragoman.gateway.dashboard.routes import DASHBOARD_ROUTES
from dragoman.gateway.handlers.admin import OPERATIONS, get_openapi
from dragoman.gateway.handlers.aws import (
    list_foundation_models,
    list_inference_profiles,
    run_amazonq_operation,
)
from dragoman.gateway.handlers.conversations import (
    add_items,
    create_conversation,
    delete_conversation,
    delete_item,
    get_conversation,
    get_item,
    list_items,
    update_conversation,
)
from dragoman.gateway.handlers.gemini_native import generate_gemini
from dragoman.gateway.handlers.generate import RequestContext, count_tokens, generate
from dragoman.gateway.handlers.models import get_model, list_models
from dragoman.gateway.handlers.responses import (
    cancel_response,
    compact_response,
    count_input_tokens,
    create_response,
    delete_response,
    get_response,
    list_input_items,
    upgrade_required,
)
from dragoman.observe.metrics import render

Handler = Callable[[RequestContext, ResponseWriter], Awaitable[None]]
_METRICS_HEADERS = (("content-type", "text/plain; version=0.0.4; charset=utf-8"),)
Headers = Mapping[str, str]
AuthMethod = Literal["key", "dashboard", "login"]


async def models(call: RequestContext, outlet: ResponseWriter) -> None:
    name = call.path_params.get("model", "")
    config = call.gateway.config.models
    dialect = call.dialect.name
    body = get_model(dialect, name, config) if name else list_models(dialect, config, call.query)
    await outlet.reply(Reply(200, body, JSON_HEADERS))


async def health(call: RequestContext, outlet: ResponseWriter) -> None:
    """Report the service name and the backend, without any call to the upstream or the store (known problem O8)."""
    body = {"service": "dragoman", "status": "ok", "backend": call.gateway.config.backend}
    await outlet.reply(Reply(200, msgspec.json.encode(body), JSON_HEADERS))


async def ready(call: RequestContext, outlet: ResponseWriter) -> None:
    """Like `health`, but fail while the gateway drains, so that a load balancer stops sending requests."""
    call.gateway.refuse_while_draining()
    await health(call, outlet)


async def metrics(call: RequestContext, outlet: ResponseWriter) -> None:
    """Return metrics for Prometheus, which sends a gateway key with the admin role as its bearer token."""
    await outlet.reply(Reply(200, render(call.gateway.observer_hub.metrics()), _METRICS_HEADERS))


async def empty_object(call: RequestContext, outlet: ResponseWriter) -> None:
    """Answer connectivity checks and telemetry of clients with an empty object; nothing is forwarded."""
    await outlet.reply(Reply(200, b"{}", JSON_HEADERS))


class Route(msgspec.Struct, frozen=True):
    """The handler of a path, its dialect, and who may call it.

    An empty `dialect` means that `guess_dialect` decides from path and headers. A `public` route needs no
    credentials, an `admin` route needs a key with the admin role. `auth` selects the authentication: gateway
    keys, or the dashboard's, which also accepts its cookie.
    """

    handler: Handler
    dialect: str = ""
    public: bool = False
    admin: bool = False
    auth: AuthMethod = "key"


class RouteMatch(msgspec.Struct, frozen=True):
    """The route of one request; `path_params` holds the named groups that the pattern matched in its path."""

    handler: Handler
    dialect: ClientDialect
    public: bool
    admin: bool
    auth: AuthMethod
    path_params: Mapping[str, str]


_EXACT_ROUTES: dict[tuple[str, str], Route] = {
    ("POST", "/v1/messages"): Route(generate, "anthropic"),
    ("POST", "/v1/messages/count_tokens"): Route(count_tokens, "anthropic"),
    ("POST", "/v1/chat/completions"): Route(generate, "openai_chat"),
    ("POST", "/v1/responses"): Route(create_response, "openai_responses"),
    ("GET", "/v1/responses"): Route(upgrade_required, "openai_responses"),
    ("POST", "/v1/responses/compact"): Route(compact_response, "openai_responses"),
    ("POST", "/v1/responses/input_tokens"): Route(count_input_tokens, "openai_responses"),
    ("POST", "/v1/conversations"): Route(create_conversation, "openai_responses"),
    ("POST", "/v1/gemini"): Route(generate_gemini, "gemini"),
    ("GET", "/v1/models"): Route(models),
    ("GET", "/inference-profiles"): Route(list_inference_profiles, "bedrock"),
    ("GET", "/foundation-models"): Route(list_foundation_models, "bedrock"),
    ("GET", "/healthz"): Route(health, public=True),
    ("GET", "/readyz"): Route(ready, public=True),
    ("GET", "/metrics"): Route(metrics, admin=True),
    ("GET", "/"): Route(health, public=True),
    ("GET", "/openapi.json"): Route(get_openapi, "openai_chat", public=True),
    ("GET", "/api/hello"): Route(empty_object, "anthropic", public=True),
}

#: The header in which Amazon Q clients send `Service.Operation`; the service differs between clients.
_TARGET_HEADER = "x-amz-target"


def _operation_paths(names: Iterable[str]) -> re.Pattern[str]:
    """Match the paths of Amazon Q clients that name the operation in the path, in varying case."""
    return re.compile(f"/(?P<operation>{'|'.join(names)})", re.IGNORECASE)


_CHAT_PATHS = _operation_paths(control.CHATS)

#: AI Studio, Vertex AI with or without a project, and litellm, which omits the version.
_MODELS_PATH = (
    r"(?:/v1|/v1beta|/v1beta1|/v1alpha)?"
    r"(?:(?:/projects/[^/]+/locations/[^/]+)?/publishers/google)?/models"
)
#: The method of a route that accepts every method.
_ANY_METHOD = "*"
_AMAZONQ_ROUTE = Route(run_amazonq_operation, "amazonq")
_PATTERN_ROUTES: tuple[tuple[str, re.Pattern[str], Route], ...] = (
    (
        "POST",
        re.compile(_MODELS_PATH + r"/(?P<model>[^/:]+):(?P<method>generateContent)"),
        Route(generate, "gemini"),
    ),
    (
        "POST",
        re.compile(_MODELS_PATH + r"/(?P<model>[^/:]+):(?P<method>streamGenerateContent)"),
        Route(generate, "gemini"),
    ),
    (
        "POST",
        re.compile(_MODELS_PATH + r"/(?P<model>[^/:]+):(?P<method>countTokens)"),
        Route(count_tokens, "gemini"),
    ),
    ("GET", re.compile(r"/v1/models/(?P<model>[^/:]+)"), Route(models)),
    ("GET", re.compile(_MODELS_PATH + r"(?:/(?P<model>[^/:]+))?"), Route(models, "gemini")),
    *(
        (verb, re.compile(path), Route(handler, "openai_responses"))
        for verb, path, handler in (
            ("GET", r"/v1/responses/(?P<id>[^/]+)", get_response),
            ("DELETE", r"/v1/responses/(?P<id>[^/]+)", delete_response),
            ("POST", r"/v1/responses/(?P<id>[^/]+)/cancel", cancel_response),
            ("GET", r"/v1/responses/(?P<id>[^/]+)/input_items", list_input_items),
            ("GET", r"/v1/conversations/(?P<id>[^/]+)", get_conversation),
            ("POST", r"/v1/conversations/(?P<id>[^/]+)", update_conversation),
            ("DELETE", r"/v1/conversations/(?P<id>[^/]+)", delete_conversation),
            ("POST", r"/v1/conversations/(?P<id>[^/]+)/items", add_items),
            ("GET", r"/v1/conversations/(?P<id>[^/]+)/items", list_items),
            ("GET", r"/v1/conversations/(?P<id>[^/]+)/items/(?P<item>[^/]+)", get_item),
            ("DELETE", r"/v1/conversations/(?P<id>[^/]+)/items/(?P<item>[^/]+)", delete_item),
        )
    ),
    ("POST", _CHAT_PATHS, _AMAZONQ_ROUTE),
    (_ANY_METHOD, _operation_paths(control.CONTROL), _AMAZONQ_ROUTE),
    *(
        ("POST", re.compile(rf"/model/(?P<model>.+)/(?P<method>{method})"), Route(handler, "bedrock"))
        for method, handler in (
            ("converse", generate),
            ("converse-stream", generate),
            ("invoke", generate),
            ("invoke-with-response-stream", generate),
            ("count-tokens", count_tokens),
        )
    ),
    ("GET", re.compile(r"/inference-profiles/(?P<model>.+)"), Route(list_inference_profiles, "bedrock")),
    ("GET", re.compile(r"/foundation-models/(?P<model>.+)"), Route(list_foundation_models, "bedrock")),
    *(
        (
            one.method,
            re.compile(one.path.replace("{id}", "(?P<id>.+)")),
            Route(one.handler, "openai_chat", admin=True),
        )
        for one in OPERATIONS
    ),
    (
        "POST",
        re.compile(r"/api/(?:event_logging|claude_code|claude_cli)/.*"),
        Route(empty_object, "anthropic"),
    ),
    *(
        (
            one.method,
            one.path,
            Route(one.handler, "openai_chat", public=one.public, admin=not one.public, auth=one.auth),
        )
        for one in DASHBOARD_ROUTES
    ),
)


def find_route(method: str, path: str, headers: Headers, query: Headers) -> RouteMatch:
    """Return the route of a request. HEAD is routed like GET.

    Raise DragomanError of kind `wrong_method` if only other methods are allowed, else of kind `not_found`.
    """
    method = "GET" if method == "HEAD" else method
    target = headers.get(_TARGET_HEADER, "")
    if target and path == "/":
        return _match(_AMAZONQ_ROUTE, path, headers, query, {"operation": target})
    route = _EXACT_ROUTES.get((method, path))
    if route is not None:
        return _cached_match(route) or _match(route, path, headers, query, {})
    for verb, pattern, candidate in _PATTERN_ROUTES:
        match = pattern.fullmatch(path) if verb in (method, _ANY_METHOD) else None
        if match is not None:
            names = {name: value for name, value in match.groupdict().items() if value is not None}
            return _match(candidate, path, headers, query, names)
    others = [verb for verb, known in _EXACT_ROUTES if known == path]
    others += [verb for verb, pattern, _ in _PATTERN_ROUTES if pattern.fullmatch(path)]
    if others:
        allowed = ", ".join(dict.fromkeys(others))
        raise DragomanError(f"{path} takes {allowed}, not {method}", kind="wrong_method", code=allowed)
    raise DragomanError(f"there is no {method} {path} here", kind="not_found")


def guess_dialect(path: str, headers: Headers) -> ClientDialect:
    """Guess the client's dialect from paths and headers that only clients of that dialect send."""
    if path.startswith(("/model/", "/inference-profiles", "/foundation-models")):
        return CLIENTS["bedrock"]
    if "anthropic-version" in headers or path.startswith(("/v1/messages", "/api/")):
        return CLIENTS["anthropic"]
    if "x-goog-api-key" in headers or ":" in path or path.startswith(("/v1beta", "/v1alpha")):
        return GeminiClient()
    if _TARGET_HEADER in headers or "amz-sdk-invocation-id" in headers or _CHAT_PATHS.fullmatch(path):
        return CLIENTS["amazonq"]
    return CLIENTS["openai_chat"]


@cache
def _cached_match(route: Route) -> RouteMatch | None:
    """Return the cached match of a route that depends on nothing but its path, else None."""
    if not route.dialect or route.dialect in _DIALECT_FACTORIES:
        return None
    return _match(route, "", {}, {}, {})


def _match(route: Route, path: str, headers: Headers, query: Headers, names: dict[str, str]) -> RouteMatch:
    make = _DIALECT_FACTORIES.get(route.dialect)
    if make is not None:
        dialect = make(names, headers, query)
    else:
        dialect = CLIENTS[route.dialect] if route.dialect else guess_dialect(path, headers)
    return RouteMatch(route.handler, dialect, route.public, route.admin, route.auth, names)


def _gemini_dialect(names: dict[str, str], _headers: Headers, query: Headers) -> ClientDialect:
    return GeminiClient(names.get("model", ""), _framing(names.get("method", ""), query))


def _framing(method: str, query: Headers) -> Framing:
    if method == "countTokens":
        return "count"
    if method != "streamGenerateContent":
        return "whole"
    return "sse" if "sse" in (query.get("alt"), query.get("$alt")) else "array"


def _amazonq_dialect(_names: dict[str, str], headers: Headers, _query: Headers) -> ClientDialect:
    return AmazonQ(headers.get(_TARGET_HEADER, ""), str(uuid4()))


def _bedrock_dialect(names: dict[str, str], _headers: Headers, _query: Headers) -> ClientDialect:
    """InvokeModel and CountTokens requests have bodies in Anthropic's format; Converse has its own."""
    model, method = names.get("model", ""), names.get("method", "")
    if method == "count-tokens":
        return CountClient(CLIENTS["anthropic"], model)
    if method.startswith("invoke"):
        return InvokeClient(CLIENTS["anthropic"], model, stream=method != "invoke")
    return ConverseClient(model, stream=method == "converse-stream")


#: Dialects whose requests carry parameters outside the body: in the path, the headers or the query.
_DIALECT_FACTORIES: dict[str, Callable[[dict[str, str], Headers, Headers], ClientDialect]] = {
    "amazonq": _amazonq_dialect,
    "bedrock": _bedrock_dialect,
    "gemini": _gemini_dialect,
}
