"""The ASGI application: the only place with a broad `except`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from dragoman.config import LOOPBACK_NAMES
from dragoman.dialects.base import ClientDialect
from dragoman.errors import DragomanError
from dragoman.server.converse import Call
from dragoman.server.gateway import Gateway
from dragoman.server.http import ClientLeft, Outlet, Receive, Scope, Send, headers_of, query_of, read_body
from dragoman.server.routes import Found, dialect_of, find_route
from dragoman.tokens import new_token

App = Callable[[Scope, Receive, Send], Awaitable[None]]

EMULATOR_PREFIX = "/_emulator"
_log = logging.getLogger("dragoman")


class GatewayApp:
    """Plain ASGI; `emulator` is mounted below `/_emulator` when there is no Google behind us."""

    def __init__(self, gateway: Gateway, emulator: App | None = None) -> None:
        self._gateway = gateway
        self._emulator = emulator
        self.running: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"{scope['type']} is not served")
        path: str = scope["path"]
        if self._emulator is not None and path.startswith(EMULATOR_PREFIX + "/") and _is_local(scope):
            scope = {**scope, "path": path.removeprefix(EMULATOR_PREFIX)}
            await self._emulator(scope, receive, send)
            return
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a request is served inside a task")
        self.running.add(task)
        try:
            await self._serve(scope, receive, send)
        finally:
            self.running.discard(task)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = f"req_{new_token()}"
        outlet = Outlet(_without_body(send) if scope["method"] == "HEAD" else send, request_id)
        headers, query = headers_of(scope), query_of(scope)
        dialect = dialect_of(scope["path"], headers)
        try:
            route = find_route(scope["method"], scope["path"], headers, query)
            dialect = route.dialect
            call = Call(self._gateway, dialect, headers, scope["path"], names=route.names, query=query)
            await self._handle(route, call, scope["method"], receive, outlet)
        except ClientLeft:
            return
        except DragomanError as error:
            await _answer_error(outlet, dialect, error)
        except Exception:
            _log.exception("request %s failed", request_id)
            mistake = DragomanError(f"Dragoman made a mistake; the log has the details of {request_id}")
            await _answer_error(outlet, dialect, mistake)
        finally:
            outlet.close()

    async def _handle(self, route: Found, call: Call, method: str, receive: Receive, outlet: Outlet) -> None:
        gate = self._gateway.gate
        gate.check_origin(call.headers)
        if not route.public:
            call.caller = gate.admit(call.headers, call.query.get("key", ""))
            self._gateway.refuse_while_draining()
        if method == "POST":
            gate.check_content_type(call.headers)
            call.body = await read_body(receive, call.headers, self._gateway.config.server.max_body_bytes)
        await _until_client_leaves(route.handler(call, outlet), receive)


def _is_local(scope: Scope) -> bool:
    """The embedded emulator is for this gateway; no web page is sent to it either.

    A gateway bound to one address of the machine's calls itself from that address.
    """
    headers = headers_of(scope)
    client = scope["client"][0]
    here = client in LOOPBACK_NAMES or client == scope["server"][0]
    return here and "origin" not in headers and "sec-fetch-site" not in headers


async def _until_client_leaves(work: Awaitable[None], receive: Receive) -> None:
    """Run the work; the moment the client is gone it is cancelled, and the upstream call with it (pain E12)."""
    task = asyncio.current_task()
    left = False

    async def watch() -> None:
        nonlocal left
        while (await receive())["type"] != "http.disconnect":
            pass
        left = True
        if task is not None:
            task.cancel()

    watcher = asyncio.get_running_loop().create_task(watch())
    try:
        await work
    except asyncio.CancelledError:
        if not left:
            raise
        if task is not None:
            task.uncancel()
        raise ClientLeft from None
    finally:
        watcher.cancel()


async def _answer_error(outlet: Outlet, dialect: ClientDialect, error: DragomanError) -> None:
    if outlet.started:  # mid-stream failures are told by the relay; this one must end the connection
        raise error
    await outlet.reply(dialect.encode_error(error))


def _without_body(send: Send) -> Send:
    async def send_head(message: MutableMapping[str, Any]) -> None:
        body = message["type"] == "http.response.body"
        await send({**message, "body": b""} if body else message)

    return send_head
