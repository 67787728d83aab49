"""The ASGI application: the only place with a broad `except`."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from dragoman.config import LOOPBACK_NAMES
from dragoman.dialects.base import ClientDialect
from dragoman.errors import DragomanError, InvalidRequest
from dragoman.server.auth import Caller
from dragoman.server.bodies import Bodies, Intake
from dragoman.server.converse import Call
from dragoman.server.emulated import EMULATOR_PREFIX, App, EmulatorMount
from dragoman.server.errand import Entry, Errand, keep_entry, known_entry, read_errand
from dragoman.server.gateway import Gateway
from dragoman.server.http import (
    AsgiLine,
    BodyCut,
    ClientLeft,
    Outlet,
    Receive,
    Scope,
    Send,
    check_head,
    head_of,
    headers_of,
    turn_of,
)
from dragoman.server.places import Places, Stay, places_for_unproven
from dragoman.server.routes import Found, find_route
from dragoman.server.sigv4 import Claim
from dragoman.server.wire.turn import Turn
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
        gateway, turn = self._gateway, turn_of(scope)
        entry = known_entry(turn, gateway.gate)
        errand = entry.errand if entry is not None else read_errand(scope, gateway.watch)
        dialect = errand.dialect
        trail = gateway.watch.begin(f"req_{new_token()}", errand.noted, errand.headers, errand.query)
        outlet = Outlet(turn if turn is not None else AsgiLine(send), trail)
        outlet.id_header = dialect.id_header
        if gateway.draining and scope["http_version"] != _HTTP2:
            outlet.add_headers((("connection", "close"),))  # whoever balances shall look for another gateway
        intake = _intake(receive, errand, turn, known=entry is not None)
        refused = True
        try:
            with Stay(self._bodies.room) as stay:
                if entry is not None:
                    route = entry.route
                else:
                    route = find_route(errand.method, errand.path, errand.headers, errand.query)
                dialect = route.dialect
                outlet.id_header = dialect.id_header
                trail.dialect = dialect.name
                trail.quiet = route.door != "key"
                if entry is None:
                    entry = await self._enter(route, errand, scope)
                    keep_entry(entry, turn)
                call = Call(
                    gateway, dialect, entry.headers, errand.path, names=route.names, query=entry.query
                )
                await self._admit(entry, call, scope, intake, stay)
                trail.caller = call.caller.scope
                trail.took(call.body)
                refused = False
                await _until_client_leaves(task, route.handler(call, outlet), outlet, turn, receive)
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

    async def _enter(self, route: Found, errand: Errand, scope: Scope) -> Entry:
        """Whether the head may pass the gate, at the door that the route has."""
        gate, headers, query, now_s = self._gateway.gate, errand.headers, errand.query, time.time()
        gate.check_origin(headers)
        check_head(scope, headers)
        admitted: Caller | Claim = Caller()
        if not route.public:
            match route.door:
                case "key":
                    admitted = gate.admit(headers, query, now_s)
                case "dashboard":
                    admitted = await self._gateway.door.admit(errand.method, headers, query, now_s)
                case "login":
                    address = str(scope["client"][0])
                    admitted = await self._gateway.door.log_in(headers, query, now_s, address)
        return Entry.of(errand, gate, route, admitted)

    async def _admit(self, entry: Entry, call: Call, scope: Scope, intake: Intake, stay: Stay) -> None:
        """Who calls and with what; a stranger's body is read only if it is what proves the caller.

        What the request takes until it is over is noted in its `stay`.
        """
        gate, route, admitted = entry.gate, entry.route, entry.admitted
        if not route.public:
            self._gateway.refuse_while_closing()
            if isinstance(admitted, Caller):
                stay.take_place(self._places, admitted.scope)
            else:
                stay.take_place(self._unproven, "")
        if route.admin and isinstance(admitted, Caller):
            gate.check_admin(admitted)
        if entry.errand.has_body:
            if not entry.lasting:
                gate.check_content_type(entry.errand.headers)
            call.body = await self._bodies.read(intake, stay, proven=isinstance(admitted, Caller))
        if isinstance(admitted, Claim):
            admitted = gate.prove(admitted, head_of(scope), call.body)
            stay.take_place(self._places, admitted.scope)
            if route.admin:
                gate.check_admin(admitted)
        call.caller = admitted


def _intake(receive: Receive, errand: Errand, turn: Turn | None, *, known: bool) -> Intake:
    """A known errand was read from another request, whose body had another length."""
    if turn is None:
        return Intake(receive, errand.headers)
    return Intake(receive, errand.headers, turn.take_body, turn.length if known else None)


def _is_local(scope: Scope) -> bool:
    """The embedded emulator is for this gateway; no web page is sent to it either.

    A gateway bound to one address of the machine's calls itself from that address.
    """
    headers = headers_of(scope)
    client = scope["client"][0]
    here = client in LOOPBACK_NAMES or client == scope["server"][0]
    return here and "origin" not in headers and "sec-fetch-site" not in headers


async def _until_client_leaves(
    task: asyncio.Task[None], work: Awaitable[None], outlet: Outlet, turn: Turn | None, receive: Receive
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

    watcher = None
    if turn is not None:
        turn.tell_leaving(leave)
    else:
        watcher = asyncio.get_running_loop().create_task(_watch(receive, leave))
    try:
        await work
    except asyncio.CancelledError:
        if not left:
            raise
        task.uncancel()
        raise ClientLeft from None
    finally:
        if turn is not None:
            turn.tell_leaving(None)
        elif watcher is not None:
            watcher.cancel()


async def _watch(receive: Receive, leave: Callable[[], None]) -> None:
    """On servers that tell nobody who has gone, but whoever waits for nothing else."""
    while (await receive())["type"] != "http.disconnect":
        pass
    leave()


async def _answer_error(outlet: Outlet, dialect: ClientDialect, error: DragomanError) -> None:
    outlet.trail.failed(error)
    if outlet.started:  # mid-stream failures are told by the relay; this one must end the connection
        raise error
    await outlet.reply(dialect.encode_error(error))
