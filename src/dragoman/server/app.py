"""The ASGI application: the only place with a broad `except`."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from dragoman.config import LOOPBACK_NAMES
from dragoman.dialects.base import ClientDialect
from dragoman.errors import DragomanError, InvalidRequest
from dragoman.server.auth import CREDENTIAL_HEADERS, Caller
from dragoman.server.bodies import Bodies, Intake
from dragoman.server.converse import Call
from dragoman.server.emulated import EMULATOR_PREFIX, App, EmulatorMount
from dragoman.server.gateway import Gateway
from dragoman.server.http import (
    BodyCut,
    ClientLeft,
    Outlet,
    Receive,
    Scope,
    Send,
    address_of,
    check_head,
    extension_of,
    head_of,
    headers_of,
)
from dragoman.server.places import Places, Stay, places_for_unproven
from dragoman.server.routes import Found, dialect_of, find_route
from dragoman.server.sigv4 import Claim
from dragoman.server.wire.turn import BODY, LEAVING
from dragoman.tokens import new_token

_HTTP2 = "2"
_log = logging.getLogger("dragoman")


class GatewayApp:
    """Plain ASGI; `emulator` is mounted below `/_emulator` when there is no Google behind us."""

    def __init__(self, gateway: Gateway, emulator: App | None = None) -> None:
        self._gateway = gateway
        self._emulator = EmulatorMount(emulator, gateway.config.server) if emulator is not None else None
        self._bodies = Bodies(gateway.config.server)
        self._places = Places(gateway.config.server.max_requests)
        self._unproven = places_for_unproven(gateway.config.server.max_requests)
        self.running: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"{scope['type']} is not served")
        path: str = scope["path"]
        if self._emulator is not None and path.startswith(EMULATOR_PREFIX + "/") and self._is_own(scope):
            await self._emulator(scope, receive, send)
            return
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a request is served inside a task")
        self.running.add(task)
        try:
            refused = await self._serve(scope, receive, send, task)
            del scope  # a stranger who takes his time with his body holds nothing but that
            if refused is not None:
                await self._bodies.discard(refused)
        finally:
            self.running.discard(task)

    def _is_own(self, scope: Scope) -> bool:
        return _is_local(scope) and self._gateway.gate.knows_host(headers_of(scope))

    async def _serve(
        self, scope: Scope, receive: Receive, send: Send, task: asyncio.Task[None]
    ) -> Intake | None:
        """The body of a request that was refused: nobody has read it."""
        headers, (path, query) = headers_of(scope), address_of(scope)
        trail = self._gateway.watch.begin(f"req_{new_token()}", scope["method"], path, headers, query)
        outlet = Outlet(send, trail)
        if self._gateway.draining and scope["http_version"] != _HTTP2:
            outlet.add_headers((("connection", "close"),))  # whoever balances shall look for another gateway
        dialect = dialect_of(path, headers)
        outlet.name_request(dialect.id_header)
        intake = Intake(receive, headers, extension_of(scope, BODY))
        refused = True
        try:
            with Stay() as stay:
                route = find_route(scope["method"], path, headers, query)
                dialect = route.dialect
                outlet.name_request(dialect.id_header)
                call = Call(self._gateway, dialect, headers, path, names=route.names, query=query)
                trail.dialect = dialect.name
                trail.quiet = route.door != "key"
                await self._admit(route, call, scope, intake, stay)
                trail.caller = call.caller.scope
                trail.took(call.body)
                refused = False
                await _until_client_leaves(task, route.handler(call, outlet), outlet, scope, receive)
        except ClientLeft as gone:
            trail.left = True
            if isinstance(gone, BodyCut):  # it may still listen
                await outlet.reply(dialect.encode_error(InvalidRequest("the body broke off")))
        except DragomanError as error:
            await _answer_error(outlet, dialect, self._gateway.redactor.told(error))
        except asyncio.CancelledError:
            if outlet.started or not self._gateway.draining:
                raise
            stopping = DragomanError("the gateway is being stopped", kind="overloaded", retry_after_s=2)
            await _answer_error(outlet, dialect, stopping)
        except Exception:
            _log.exception("request %s failed", trail.id)
            mistake = DragomanError(f"Dragoman made a mistake; the log has the details of {trail.id}")
            await _answer_error(outlet, dialect, mistake)
        finally:
            outlet.close()
            self._gateway.watch.end(trail)
        return intake if refused else None

    async def _admit(self, route: Found, call: Call, scope: Scope, intake: Intake, stay: Stay) -> None:
        """Who calls and with what; a stranger's body is read only if it is what proves the caller.

        What the request takes until it is over is noted in its `stay`.
        """
        gate = self._gateway.gate
        gate.check_origin(call.headers)
        check_head(scope, call.headers)
        admitted: Caller | Claim = Caller()
        if not route.public:
            admitted = await self._caller(route, call, scope)
            self._gateway.refuse_while_closing()
            if isinstance(admitted, Caller):
                stay.take_place(self._places, admitted.scope)
            else:
                stay.take_place(self._unproven, "")
        if route.admin and isinstance(admitted, Caller):
            gate.check_admin(admitted)
        if scope["method"] in ("POST", "PUT"):
            gate.check_content_type(call.headers)
            proven = not isinstance(admitted, Claim)
            call.body = await self._bodies.read(intake, stay, proven=proven)
        if isinstance(admitted, Claim):
            admitted = gate.prove(admitted, head_of(scope), call.body)
            stay.take_place(self._places, admitted.scope)
        if route.admin:
            gate.check_admin(admitted)
        call.caller = admitted
        for name in CREDENTIAL_HEADERS:  # nobody behind the gate needs them
            call.headers.pop(name, None)
        call.query.pop("key", None)

    async def _caller(self, route: Found, call: Call, scope: Scope) -> Caller | Claim:
        """At the door that the route has."""
        headers, query, now_s = call.headers, call.query, time.time()
        match route.door:
            case "key":
                return self._gateway.gate.admit(headers, query, now_s)
            case "dashboard":
                return await self._gateway.door.admit(scope["method"], headers, query, now_s)
            case "login":
                return await self._gateway.door.log_in(headers, query, now_s, str(scope["client"][0]))


def _is_local(scope: Scope) -> bool:
    """The embedded emulator is for this gateway; no web page is sent to it either.

    A gateway bound to one address of the machine's calls itself from that address.
    """
    headers = headers_of(scope)
    client = scope["client"][0]
    here = client in LOOPBACK_NAMES or client == scope["server"][0]
    return here and "origin" not in headers and "sec-fetch-site" not in headers


async def _until_client_leaves(
    task: asyncio.Task[None], work: Awaitable[None], outlet: Outlet, scope: Scope, receive: Receive
) -> None:
    """Run the work in our task; the moment the client is gone it is cancelled, and the upstream call with it (pain E12).

    Many hang up with the last byte: what is left to do then, such as settling what was used, is done.
    """
    left = False

    def leave() -> None:
        nonlocal left
        left = not outlet.ended
        if left:
            task.cancel()

    unwatch = _watch(scope, receive, leave)
    try:
        await work
    except asyncio.CancelledError:
        if not left:
            raise
        task.uncancel()
        raise ClientLeft from None
    finally:
        unwatch()


def _watch(scope: Scope, receive: Receive, leave: Callable[[], None]) -> Callable[[], object]:
    """`leave` is called when the client has gone: by our own server, or by a task that waits for nothing else."""
    tell = extension_of(scope, LEAVING)
    if tell is not None:
        tell(leave)
        return lambda: tell(None)

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        leave()

    return asyncio.get_running_loop().create_task(watch()).cancel


async def _answer_error(outlet: Outlet, dialect: ClientDialect, error: DragomanError) -> None:
    outlet.trail.failed(error)
    if outlet.started:  # mid-stream failures are told by the relay; this one must end the connection
        raise error
    await outlet.reply(dialect.encode_error(error))
