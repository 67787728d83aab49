"""The ASGI application: authenticate a request, read its body, run its handler, and encode its errors.

The only broad `except` of the request path is here: every exception becomes an error response in the client's
dialect. `open_gateway_app` opens and closes what the application needs: the store and the embedded emulator.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

from dragoman.config import Config
from dragoman.dialects.base import ClientDialect
from dragoman.errors import DragomanError, InvalidRequest
from dragoman.gateway.asgi import (
    ClientDisconnect,
    IncompleteBody,
    Receive,
    ResponseWriter,
    Scope,
    Send,
    check_head,
    raw_head,
)
from dragoman.gateway.auth.authenticator import Caller
from dragoman.gateway.auth.sigv4 import SigV4Claim
from dragoman.gateway.context import Gateway
from dragoman.gateway.handlers.generate import RequestContext
from dragoman.gateway.limits.bodies import BodyLimits, BodyReader
from dragoman.gateway.limits.concurrency import ConcurrencyLimiter, RequestLease, unauthenticated_limiter
from dragoman.gateway.request import RequestHead, read_request_head
from dragoman.gateway.routes import RouteMatch, find_route
from dragoman.ids import new_id
from dragoman.store import open_store

_log = logging.getLogger("dragoman")


class GatewayApp:
    """Serve ASGI `http` scopes; `running` holds the task of each request that is being served."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self._bodies = BodyLimits(gateway.config.server)
        self._concurrency = ConcurrencyLimiter(gateway.config.server.max_requests)
        self._unauthenticated = unauthenticated_limiter(gateway.config.server.max_requests)
        self.running: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"{scope['type']} is not served")
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a request is served inside a task")
        self.running.add(task)
        try:
            refused = await self._serve(scope, receive, send, task)
            del scope  # hold nothing but the body reader while a refused client is still sending
            if refused is not None:
                await self._bodies.discard(refused)
        finally:
            self.running.discard(task)

    async def _serve(
        self, scope: Scope, receive: Receive, send: Send, task: asyncio.Task[None]
    ) -> BodyReader | None:
        """Answer one request. Return its body reader if it was refused before the body was read."""
        gateway = self.gateway
        errand = read_request_head(scope, gateway.observer_hub)
        dialect = errand.dialect
        trail = gateway.observer_hub.begin(f"req_{new_id()}", errand.recorded, errand.headers, errand.query)
        outlet = ResponseWriter(send, trail, gateway.config.server.reader_idle_s)
        outlet.id_header = dialect.id_header
        if gateway.draining and scope["http_version"].startswith("1"):
            outlet.add_headers((("connection", "close"),))  # so that a load balancer reconnects elsewhere
        intake = BodyReader(receive, errand.headers)
        refused = True
        try:
            with RequestLease(self._bodies.byte_budget) as stay:
                route = find_route(errand.method, errand.path, errand.headers, errand.query)
                dialect = route.dialect
                outlet.id_header = dialect.id_header
                trail.dialect = dialect.name
                trail.is_unrecorded = route.auth != "key"
                admitted = await self._authenticate(route, errand, scope)
                call = RequestContext(
                    gateway,
                    dialect,
                    errand.public_headers(),
                    errand.path,
                    names=route.path_params,
                    query=errand.public_query(),
                )
                call.caller = await self._admit(route, admitted, errand, call, scope, intake, stay)
                trail.caller = call.caller.scope
                trail.on_request_body(call.body)
                refused = False
                await _run_until_disconnect(task, route.handler(call, outlet), outlet, receive)
        except ClientDisconnect as gone:
            trail.client_disconnected = True
            if isinstance(gone, IncompleteBody):  # a client that only half-closed the connection still reads
                await outlet.reply(dialect.encode_error(InvalidRequest("the body broke off")))
        except DragomanError as error:
            await _send_error(outlet, dialect, gateway.redactor.redact_error(error))
        except asyncio.CancelledError:
            if outlet.started or not gateway.draining:
                raise
            stopping = DragomanError("the gateway is being stopped", kind="overloaded", retry_after_s=2)
            await _send_error(outlet, dialect, stopping)
        except Exception:
            _log.exception("request %s failed", trail.id)
            mistake = DragomanError(f"Dragoman made a mistake; the log has the details of {trail.id}")
            await _send_error(outlet, dialect, mistake)
        finally:
            outlet.close()
            gateway.observer_hub.end(trail)
        return intake if refused else None

    async def _authenticate(
        self, route: RouteMatch, errand: RequestHead, scope: Scope
    ) -> Caller | SigV4Claim:
        """Check everything that the request head alone decides, before any byte of the body is read.

        Return the caller, or the claim of a signed request that can be verified only with its body.
        """
        gate, headers, query, now_s = self.gateway.authenticator, errand.headers, errand.query, time.time()
        gate.check_origin(headers)
        check_head(scope, headers)
        if route.public:
            return Caller()
        match route.auth:
            case "key":
                return gate.authenticate(headers, query, now_s)
            case "dashboard":
                return await self.gateway.dashboard_auth.authenticate(errand.method, headers, query, now_s)
            case "login":
                address = str((scope.get("client") or ("",))[0])
                return await self.gateway.dashboard_auth.log_in(headers, query, now_s, address)

    async def _admit(
        self,
        route: RouteMatch,
        admitted: Caller | SigV4Claim,
        errand: RequestHead,
        call: RequestContext,
        scope: Scope,
        intake: BodyReader,
        stay: RequestLease,
    ) -> Caller:
        """Take a concurrency slot, read the body into `call`, and return the caller.

        The body of an unauthenticated caller is read only if the request is signed, because the signature
        covers it.
        """
        gate = self.gateway.authenticator
        if not route.public:
            if isinstance(admitted, Caller):
                stay.acquire_slot(self._concurrency, admitted.scope)
            else:
                stay.acquire_slot(self._unauthenticated, "")
        if route.admin and isinstance(admitted, Caller):
            gate.check_admin(admitted)
        if errand.has_body:
            gate.check_content_type(errand.headers)
            call.body = await self._bodies.read(intake, stay, proven=isinstance(admitted, Caller))
        if isinstance(admitted, SigV4Claim):
            admitted = gate.verify_signature(admitted, raw_head(scope), call.body)
            stay.acquire_slot(self._concurrency, admitted.scope)
            if route.admin:
                gate.check_admin(admitted)
        return admitted


async def _run_until_disconnect(
    task: asyncio.Task[None], work: Awaitable[None], outlet: ResponseWriter, receive: Receive
) -> None:
    """Await `work`, and cancel it together with its upstream call when the client disconnects (pain E12).

    A client that disconnects after the last byte was sent does not interrupt the remaining work, such as
    writing the ledger. Raises ClientLeft.
    """
    left = False

    def leave() -> None:
        nonlocal left
        left = True
        task.cancel()

    async def watch_disconnect() -> None:
        """Wait for `http.disconnect`, which an ASGI server reports only while the app awaits `receive`."""
        while (await receive())["type"] != "http.disconnect":
            pass
        if not outlet.ended:
            leave()

    outlet.on_stall = leave
    watcher = asyncio.get_running_loop().create_task(watch_disconnect())
    try:
        await work
    except asyncio.CancelledError:
        if not left:
            raise
        task.uncancel()
        raise ClientDisconnect from None
    finally:
        outlet.on_stall = None  # break the reference cycle: `leave` holds this frame
        watcher.cancel()


async def _send_error(outlet: ResponseWriter, dialect: ClientDialect, error: DragomanError) -> None:
    outlet.recorder.on_error(error)
    if outlet.started:  # the relay reports failures inside a stream itself; here only an abort is left
        raise error
    await outlet.reply(dialect.encode_error(error))


@asynccontextmanager
async def open_gateway_app(config: Config, admin_keys: tuple[str, ...]) -> AsyncIterator[GatewayApp]:
    """Give the application; state lies in `config.home`, which must exist."""
    async with _open_embedded_emulator(config) as emulator_url:
        gateway = Gateway(
            config,
            open_store(config),
            keys=config.server.keys,
            admin_keys=admin_keys,
            emulator_url=emulator_url,
        )
        try:
            yield GatewayApp(gateway)
        finally:
            await gateway.close()


@asynccontextmanager
async def _open_embedded_emulator(config: Config) -> AsyncIterator[str]:
    """Without a key, answer from the emulator: on a loopback port of its own, reached like Google (decision 5)."""
    if config.backend != "emulator":
        yield ""
        return
    from dragoman.emulator.http_server import EmulatorServer
    from dragoman.emulator.service import EmulatorService

    listener = EmulatorServer(EmulatorService("dragoman", None).handle)
    url = await listener.start()
    try:
        yield url
    finally:
        await listener.close()
