"""Path to handler, as tables: exact paths first, then patterns."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from dragoman.dialects import CLIENTS
from dragoman.dialects.base import ClientDialect, Reply
from dragoman.dialects.gemini.client import Framing, GeminiClient
from dragoman.errors import DragomanError
from dragoman.server.conversations import (
    add_items,
    create_conversation,
    delete_conversation,
    delete_item,
    get_conversation,
    get_item,
    list_items,
    update_conversation,
)
from dragoman.server.converse import Call, converse, count_tokens
from dragoman.server.http import JSON_HEADERS, Outlet
from dragoman.server.models import get_model, list_models
from dragoman.server.native import gemini
from dragoman.server.responses import (
    cancel_response,
    compact,
    count_input,
    delete_response,
    get_response,
    list_input_items,
    responses,
    upgrade_required,
)

Handler = Callable[[Call, Outlet], Awaitable[None]]
Headers = Mapping[str, str]


async def models(call: Call, outlet: Outlet) -> None:
    name = call.names.get("model", "")
    config = call.gateway.config.models
    dialect = call.dialect.name
    body = get_model(dialect, name, config) if name else list_models(dialect, config, call.query)
    await outlet.reply(Reply(200, body, JSON_HEADERS))


async def health(call: Call, outlet: Outlet) -> None:
    """Says who answers and what is behind; asks nobody (pain O8)."""
    body = {"service": "dragoman", "status": "ok", "backend": call.gateway.config.backend}
    await outlet.reply(Reply(200, msgspec.json.encode(body), JSON_HEADERS))


async def ready(call: Call, outlet: Outlet) -> None:
    call.gateway.refuse_while_draining()
    await health(call, outlet)


async def nothing(call: Call, outlet: Outlet) -> None:
    """Paths clients call for their own sake: greetings and telemetry, which goes no further."""
    await outlet.reply(Reply(200, b"{}", JSON_HEADERS))


class Route(msgspec.Struct, frozen=True):
    """What a path needs: a handler, the dialect it is spoken in, and whether it is open to everybody.

    No dialect: the headers tell.
    """

    handler: Handler
    dialect: str = ""
    public: bool = False


class Found(msgspec.Struct, frozen=True):
    """A route for one request; `names` are what the pattern of its path found."""

    handler: Handler
    dialect: ClientDialect
    public: bool
    names: dict[str, str]


_EXACT: dict[tuple[str, str], Route] = {
    ("POST", "/v1/messages"): Route(converse, "anthropic"),
    ("POST", "/v1/messages/count_tokens"): Route(count_tokens, "anthropic"),
    ("POST", "/v1/chat/completions"): Route(converse, "openai_chat"),
    ("POST", "/v1/responses"): Route(responses, "openai_responses"),
    ("GET", "/v1/responses"): Route(upgrade_required, "openai_responses"),
    ("POST", "/v1/responses/compact"): Route(compact, "openai_responses"),
    ("POST", "/v1/responses/input_tokens"): Route(count_input, "openai_responses"),
    ("POST", "/v1/conversations"): Route(create_conversation, "openai_responses"),
    ("POST", "/v1/gemini"): Route(gemini, "gemini"),
    ("GET", "/v1/models"): Route(models),
    ("GET", "/healthz"): Route(health, public=True),
    ("GET", "/readyz"): Route(ready, public=True),
    ("GET", "/"): Route(health, public=True),
    ("GET", "/api/hello"): Route(nothing, "anthropic", public=True),
}

#: AI Studio, Vertex with or without a project, and litellm, which leaves the version out.
_MODELS_PATH = (
    r"(?:/v1|/v1beta|/v1beta1|/v1alpha)?"
    r"(?:(?:/projects/[^/]+/locations/[^/]+)?/publishers/google)?/models"
)
_PATTERNS: tuple[tuple[str, re.Pattern[str], Route], ...] = (
    (
        "POST",
        re.compile(_MODELS_PATH + r"/(?P<model>[^/:]+):(?P<method>generateContent)"),
        Route(converse, "gemini"),
    ),
    (
        "POST",
        re.compile(_MODELS_PATH + r"/(?P<model>[^/:]+):(?P<method>streamGenerateContent)"),
        Route(converse, "gemini"),
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
    ("POST", re.compile(r"/api/(?:event_logging|claude_code|claude_cli)/.*"), Route(nothing, "anthropic")),
)


def find_route(method: str, path: str, headers: Headers, query: Headers) -> Found:
    method = "GET" if method == "HEAD" else method
    route = _EXACT.get((method, path))
    if route is not None:
        return _found(route, path, headers, query, {})
    for verb, pattern, candidate in _PATTERNS:
        match = pattern.fullmatch(path) if verb == method else None
        if match is not None:
            names = {name: value for name, value in match.groupdict().items() if value is not None}
            return _found(candidate, path, headers, query, names)
    others = [verb for verb, known in _EXACT if known == path]
    others += [verb for verb, pattern, _ in _PATTERNS if pattern.fullmatch(path)]
    if others:
        allowed = ", ".join(dict.fromkeys(others))
        raise DragomanError(f"{path} takes {allowed}, not {method}", kind="wrong_method", code=allowed)
    raise DragomanError(f"there is no {method} {path} here", kind="not_found")


def dialect_of(path: str, headers: Headers) -> ClientDialect:
    """Who asks, where the path does not say: by what only its clients send."""
    if "anthropic-version" in headers or path.startswith(("/v1/messages", "/api/")):
        return CLIENTS["anthropic"]
    if "x-goog-api-key" in headers or ":" in path or path.startswith(("/v1beta", "/v1alpha")):
        return GeminiClient()
    return CLIENTS["openai_chat"]


def _found(route: Route, path: str, headers: Headers, query: Headers, names: dict[str, str]) -> Found:
    if route.dialect == "gemini":
        dialect: ClientDialect = GeminiClient(
            names.get("model", ""), _framing(names.get("method", ""), query)
        )
    else:
        dialect = CLIENTS[route.dialect] if route.dialect else dialect_of(path, headers)
    return Found(route.handler, dialect, route.public, names)


def _framing(method: str, query: Headers) -> Framing:
    if method == "countTokens":
        return "count"
    if method != "streamGenerateContent":
        return "whole"
    return "sse" if "sse" in (query.get("alt"), query.get("$alt")) else "array"
