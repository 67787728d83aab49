"""The dashboard's routes: static files, login and logout, and the JSON API of the page (see DASHBOARD)."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

from dragoman.dashboard.pages import PAGE, SAFE_HEADERS, StaticFile, static_files, static_names
from dragoman.dialects.base import HeaderList, Reply
from dragoman.server.converse import Call
from dragoman.server.cookies import LIFETIME_S, set_cookie, write_pass
from dragoman.server.dashboard_models import cost, models
from dragoman.server.dashboard_request import replay, request
from dragoman.server.dashboard_traffic import live, requests, sessions, tools
from dragoman.server.http import JSON_HEADERS, Outlet

_FRESH: HeaderList = (("cache-control", "no-store"),)


class Me(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows about the gateway; `login` is false if the dashboard needs no key."""

    version: str
    backend: str
    login: bool
    capture: str
    ledger: bool
    started_ms: int
    workers: int


async def page(call: Call, outlet: Outlet) -> None:
    await _file(call, outlet, static_files()[PAGE])


async def static(call: Call, outlet: Outlet) -> None:
    await _file(call, outlet, static_files()[call.names["file"]])


async def to_page(call: Call, outlet: Outlet) -> None:
    """Redirect `/dashboard/` to `/dashboard`, because the URLs in the page are relative to the latter."""
    del call
    await outlet.reply(Reply(308, b"", (("location", "../dashboard"), *SAFE_HEADERS)))


async def _file(call: Call, outlet: Outlet, file: StaticFile) -> None:
    known = call.headers.get("if-none-match", "") == file.tag
    headers = (
        ("content-type", file.content_type),
        ("etag", file.tag),
        ("cache-control", "no-cache"),
        *SAFE_HEADERS,
    )
    await outlet.reply(Reply(304, b"", headers) if known else Reply(200, file.data, headers))


async def me(call: Call, outlet: Outlet) -> None:
    from importlib.metadata import version  # takes a megabyte; not imported unless the page is opened

    gateway = call.gateway
    shown = Me(
        version=version("dragoman"),
        backend=gateway.config.backend,
        login=not gateway.door.is_open,
        capture=gateway.config.observe.capture,
        ledger=gateway.config.observe.ledger,
        started_ms=int(gateway.started_s * 1000),
        workers=gateway.config.server.workers,
    )
    await outlet.reply(Reply(200, msgspec.json.encode(shown), (*JSON_HEADERS, *_FRESH, *SAFE_HEADERS)))


async def login(call: Call, outlet: Outlet) -> None:
    """Set the session cookie. The caller has presented an admin key, unless the dashboard needs none."""
    headers = (*JSON_HEADERS, *_FRESH, *SAFE_HEADERS)
    if call.caller.key_hash:
        given = call.gateway.door.issue(call.caller, time.time())
        headers = (*headers, set_cookie(call.headers, write_pass(given), LIFETIME_S))
    await outlet.reply(Reply(200, b"{}", headers))


async def logout(call: Call, outlet: Outlet) -> None:
    await call.gateway.door.log_out(call.headers, time.time())
    headers = (*JSON_HEADERS, *_FRESH, *SAFE_HEADERS, set_cookie(call.headers, "", 0))
    await outlet.reply(Reply(200, b"{}", headers))


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One route of the dashboard. A `public` one needs no credentials."""

    method: Literal["GET", "POST"]
    path: re.Pattern[str]
    handler: Callable[[Call, Outlet], Awaitable[None]]
    public: bool = False
    door: Literal["dashboard", "login"] = "dashboard"


_FILES = "|".join(re.escape(name) for name in static_names() if name != PAGE)


def _get(path: str, handler: Callable[[Call, Outlet], Awaitable[None]], *, public: bool = False) -> Operation:
    return Operation(method="GET", path=re.compile(f"/dashboard{path}"), handler=handler, public=public)


DASHBOARD: tuple[Operation, ...] = (
    _get("", page, public=True),
    _get("/", to_page, public=True),
    _get(rf"/static/(?P<file>{_FILES})", static, public=True),
    Operation(method="POST", path=re.compile("/dashboard/api/login"), handler=login, door="login"),
    Operation(method="POST", path=re.compile("/dashboard/api/logout"), handler=logout),
    _get("/api/me", me),
    _get("/api/requests", requests),
    _get("/api/live", live),
    _get(r"/api/requests/(?P<id>[A-Za-z0-9_]{1,80})", request),
    _get("/api/sessions", sessions),
    _get("/api/tools", tools),
    _get("/api/models", models),
    _get("/api/cost", cost),
    Operation(
        method="POST",
        path=re.compile(r"/dashboard/api/requests/(?P<id>[A-Za-z0-9_]{1,80})/replay"),
        handler=replay,
    ),
)
