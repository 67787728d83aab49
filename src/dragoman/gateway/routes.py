"""Routing: exact paths first, then patterns, each with its handler, dialect and access rules.

The routes of the dialects are in the table of `dragoman.dialects`, which names their handlers; the gateway's own routes
and the small handlers without a model are here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

import msgspec

from dragoman.dialects import ANY_METHOD, DIALECTS, recognize_dialect
from dragoman.dialects.base import Reply
from dragoman.errors import DragomanError
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
from dragoman.gateway.handlers.gemini_native import generate_in_gemini_conversation
from dragoman.gateway.handlers.generate import count_tokens, generate
from dragoman.gateway.handlers.models import list_models
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
from dragoman.gateway.request import AuthMethod, Handler, RequestContext, RouteMatch
from dragoman.gateway.response_writer import JSON_HEADERS, ResponseWriter
from dragoman.observe.metrics import render

_METRICS_HEADERS = (("content-type", "text/plain; version=0.0.4; charset=utf-8"),)


async def health(request: RequestContext, response: ResponseWriter) -> None:
    """Report the service name and the backend, without any call to the upstream or the store (known problem O8)."""
    body = {"service": "dragoman", "status": "ok", "backend": request.gateway.config.backend}
    await response.reply(Reply(200, msgspec.json.encode(body), JSON_HEADERS))


async def ready(request: RequestContext, response: ResponseWriter) -> None:
    """Like `health`, but fail while the gateway drains, so that a load balancer stops sending requests."""
    request.gateway.refuse_while_draining()
    await health(request, response)


async def metrics(request: RequestContext, response: ResponseWriter) -> None:
    """Return metrics for Prometheus, which sends a gateway key with the admin role as its bearer token."""
    await response.reply(Reply(200, render(request.gateway.observer_hub.metrics()), _METRICS_HEADERS))


async def empty_object(request: RequestContext, response: ResponseWriter) -> None:
    """Answer connectivity checks and telemetry of clients with an empty object; nothing is forwarded."""
    await response.reply(Reply(200, b"{}", JSON_HEADERS))


Headers = Mapping[str, str]


#: The handlers that the table of dialects names.
HANDLERS: dict[str, Handler] = {
    handler.__name__: handler
    for handler in (
        generate,
        count_tokens,
        list_models,
        empty_object,
        list_inference_profiles,
        list_foundation_models,
        run_amazonq_operation,
        generate_in_gemini_conversation,
        create_response,
        compact_response,
        count_input_tokens,
        upgrade_required,
        get_response,
        delete_response,
        cancel_response,
        list_input_items,
        create_conversation,
        get_conversation,
        update_conversation,
        delete_conversation,
        add_items,
        list_items,
        get_item,
        delete_item,
    )
}


class Route(msgspec.Struct, frozen=True):
    """The handler of a path, its dialect, and who may call it.

    An empty `dialect` means that path and headers decide. A `public` route needs no credentials, an `admin` route needs
    a key with the admin role. `auth` selects the authentication: gateway keys, or the dashboard's, which also accepts
    its cookie.
    """

    handler: Handler
    dialect: str = ""
    public: bool = False
    admin: bool = False
    auth: AuthMethod = "key"


_DIALECTS = {dialect.name: dialect for dialect in DIALECTS}
_DIALECT_ROUTES = tuple(
    (row, Route(HANDLERS[row.handler], dialect.name)) for dialect in DIALECTS for row in dialect.routes
)
_EXACT_ROUTES: dict[tuple[str, str], Route] = {
    **{(row.method, row.path): route for row, route in _DIALECT_ROUTES if not (row.is_pattern or row.header)},
    ("GET", "/v1/models"): Route(list_models),
    ("GET", "/healthz"): Route(health, public=True),
    ("GET", "/readyz"): Route(ready, public=True),
    ("GET", "/metrics"): Route(metrics, admin=True),
    ("GET", "/"): Route(health, public=True),
    ("GET", "/openapi.json"): Route(get_openapi, "openai_chat", public=True),
    ("GET", "/api/hello"): Route(empty_object, "anthropic", public=True),
}
_PATTERN_ROUTES: tuple[tuple[str, re.Pattern[str], Route], ...] = (
    (
        "GET",
        re.compile(r"/v1/models/(?P<model>[^/:]+)"),
        Route(list_models),
    ),  # before Gemini's, which matches too
    *((row.method, re.compile(row.path), route) for row, route in _DIALECT_ROUTES if row.is_pattern),
    *(
        (
            operation.method,
            re.compile(operation.path.replace("{id}", "(?P<id>.+)")),
            Route(operation.handler, "openai_chat", admin=True),
        )
        for operation in OPERATIONS
    ),
    *(
        (
            page.method,
            page.path,
            Route(page.handler, "openai_chat", public=page.public, admin=not page.public, auth=page.auth),
        )
        for page in DASHBOARD_ROUTES
    ),
)
#: (path, header) -> the route of requests for the path with this header.
_HEADER_ROUTES = {(row.path, row.header): route for row, route in _DIALECT_ROUTES if row.header}


def find_route(method: str, path: str, headers: Headers, query: Headers) -> RouteMatch:
    """Return the route of a request. HEAD is routed like GET.

    Raise DragomanError of kind `wrong_method` if only other methods are allowed, else of kind `not_found`.
    """
    method = "GET" if method == "HEAD" else method
    for (header_path, header), route in _HEADER_ROUTES.items():
        if path == header_path and headers.get(header):
            return _match(route, path, headers, query, {"operation": headers[header]})
    exact = _EXACT_ROUTES.get((method, path))
    if exact is not None:
        return _cached_match(exact) or _match(exact, path, headers, query, {})
    for allowed, pattern, route in _PATTERN_ROUTES:
        found = pattern.fullmatch(path) if allowed in (method, ANY_METHOD) else None
        if found is not None:
            path_params = {name: value for name, value in found.groupdict().items() if value is not None}
            return _match(route, path, headers, query, path_params)
    raise _no_route(method, path)


def _no_route(method: str, path: str) -> DragomanError:
    methods = [allowed for allowed, exact_path in _EXACT_ROUTES if exact_path == path]
    methods += [allowed for allowed, pattern, _ in _PATTERN_ROUTES if pattern.fullmatch(path)]
    if methods:
        allowed = ", ".join(dict.fromkeys(methods))
        return DragomanError(f"{path} takes {allowed}, not {method}", kind="wrong_method", code=allowed)
    return DragomanError(f"there is no {method} {path} here", kind="not_found")


@cache
def _cached_match(route: Route) -> RouteMatch | None:
    """Return the cached match of a route that depends on nothing but its path, else None."""
    if not route.dialect or _DIALECTS[route.dialect].create is not None:
        return None
    return _match(route, "", {}, {}, {})


def _match(
    route: Route, path: str, headers: Headers, query: Headers, path_params: Mapping[str, str]
) -> RouteMatch:
    if route.dialect:
        row = _DIALECTS[route.dialect]
        dialect = row.client if row.create is None else row.create(path_params, headers, query)
    else:
        dialect = recognize_dialect(path, headers)
    return RouteMatch(route.handler, dialect, route.public, route.admin, route.auth, path_params)
