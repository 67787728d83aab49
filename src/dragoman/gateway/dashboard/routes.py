"""The dashboard's routes: static files, login and logout, and the JSON API of the page (see DASHBOARD)."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

from dragoman.dialects.base import HeaderList, Reply
from dragoman.gateway.dashboard.auth import LIFETIME_S, encode_cookie, set_cookie
from dragoman.gateway.dashboard.models import get_cost, get_models
from dragoman.gateway.dashboard.request import get_request, post_replay
from dragoman.gateway.dashboard.static_files import (
    INDEX_FILE,
    SAFE_HEADERS,
    StaticFile,
    list_static_names,
    load_static_files,
)
from dragoman.gateway.dashboard.traffic import list_requests, list_sessions, list_tools, stream_requests
from dragoman.gateway.request import RequestContext
from dragoman.gateway.response_writer import JSON_HEADERS, ResponseWriter

_NO_STORE: HeaderList = (("cache-control", "no-store"),)


class GatewayInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows about the gateway; `login` is false if the dashboard needs no key."""

    version: str
    backend: str
    login: bool
    capture: str
    ledger: bool
    started_ms: int
    workers: int


async def index_page(request: RequestContext, response: ResponseWriter) -> None:
    await _send_file(request, response, load_static_files()[INDEX_FILE])


async def static_file(request: RequestContext, response: ResponseWriter) -> None:
    await _send_file(request, response, load_static_files()[request.path_params["file"]])


async def redirect_to_page(request: RequestContext, response: ResponseWriter) -> None:
    """Redirect `/dashboard/` to `/dashboard`, because the URLs in the page are relative to the latter."""
    del request
    await response.reply(Reply(308, b"", (("location", "../dashboard"), *SAFE_HEADERS)))


async def _send_file(request: RequestContext, response: ResponseWriter, file: StaticFile) -> None:
    is_unchanged = request.headers.get("if-none-match", "") == file.tag
    headers = (
        ("content-type", file.content_type),
        ("etag", file.tag),
        ("cache-control", "no-cache"),
        *SAFE_HEADERS,
    )
    await response.reply(Reply(304, b"", headers) if is_unchanged else Reply(200, file.data, headers))


async def get_info(request: RequestContext, response: ResponseWriter) -> None:
    from importlib.metadata import version  # takes a megabyte; not imported unless the page is opened

    gateway = request.gateway
    info = GatewayInfo(
        version=version("dragoman"),
        backend=gateway.config.backend,
        login=not gateway.dashboard_auth.is_open,
        capture=gateway.config.observe.capture,
        ledger=gateway.config.observe.ledger,
        started_ms=int(gateway.started_s * 1000),
        workers=gateway.config.server.workers,
    )
    await response.reply(Reply(200, msgspec.json.encode(info), (*JSON_HEADERS, *_NO_STORE, *SAFE_HEADERS)))


async def log_in(request: RequestContext, response: ResponseWriter) -> None:
    """Set the session cookie. The caller has presented an admin key, unless the dashboard needs none."""
    headers = (*JSON_HEADERS, *_NO_STORE, *SAFE_HEADERS)
    if request.caller.key_hash:
        cookie = request.gateway.dashboard_auth.new_cookie(request.caller, time.time())
        headers = (*headers, set_cookie(request.headers, encode_cookie(cookie), LIFETIME_S))
    await response.reply(Reply(200, b"{}", headers))


async def log_out(request: RequestContext, response: ResponseWriter) -> None:
    await request.gateway.dashboard_auth.log_out(request.headers, time.time())
    headers = (*JSON_HEADERS, *_NO_STORE, *SAFE_HEADERS, set_cookie(request.headers, "", 0))
    await response.reply(Reply(200, b"{}", headers))


class DashboardRoute(msgspec.Struct, frozen=True, kw_only=True):
    """One route of the dashboard. A `public` one needs no credentials."""

    method: Literal["GET", "POST"]
    path: re.Pattern[str]
    handler: Callable[[RequestContext, ResponseWriter], Awaitable[None]]
    public: bool = False
    auth: Literal["dashboard", "login"] = "dashboard"


_FILE_PATTERN = "|".join(re.escape(name) for name in list_static_names() if name != INDEX_FILE)


def _get_route(
    path: str, handler: Callable[[RequestContext, ResponseWriter], Awaitable[None]], *, public: bool = False
) -> DashboardRoute:
    return DashboardRoute(method="GET", path=re.compile(f"/dashboard{path}"), handler=handler, public=public)


DASHBOARD_ROUTES: tuple[DashboardRoute, ...] = (
    _get_route("", index_page, public=True),
    _get_route("/", redirect_to_page, public=True),
    _get_route(rf"/static/(?P<file>{_FILE_PATTERN})", static_file, public=True),
    DashboardRoute(method="POST", path=re.compile("/dashboard/api/login"), handler=log_in, auth="login"),
    DashboardRoute(method="POST", path=re.compile("/dashboard/api/logout"), handler=log_out),
    _get_route("/api/me", get_info),
    _get_route("/api/requests", list_requests),
    _get_route("/api/live", stream_requests),
    _get_route(r"/api/requests/(?P<id>[A-Za-z0-9_]{1,80})", get_request),
    _get_route("/api/sessions", list_sessions),
    _get_route("/api/tools", list_tools),
    _get_route("/api/models", get_models),
    _get_route("/api/cost", get_cost),
    DashboardRoute(
        method="POST",
        path=re.compile(r"/dashboard/api/requests/(?P<id>[A-Za-z0-9_]{1,80})/replay"),
        handler=post_replay,
    ),
)
