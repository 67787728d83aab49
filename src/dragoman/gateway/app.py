"""The ASGI application: parse a head, match the route, authenticate, read the body, run the handler, encode errors.

The only broad `except` of the request path is here: every exception becomes an error response in the client's
dialect. `open_gateway_app` opens and closes what the application needs: the store and the embedded emulator.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dragoman.config import Config
from dragoman.errors import DragomanError, InvalidRequest
from dragoman.gateway.asgi import (
    ClientDisconnect,
    IncompleteBody,
    Receive,
    Scope,
    Send,
    check_head,
    path_and_query,
    raw_head,
    request_headers,
)
from dragoman.gateway.auth.authenticator import Caller
from dragoman.gateway.auth.sigv4 import SigV4Claim
from dragoman.gateway.client_disconnect import run_until_disconnect
from dragoman.gateway.context import Gateway
from dragoman.gateway.limits.bodies import BodyLimits, BodyReader
from dragoman.gateway.limits.concurrency import ConcurrencyLimiter, RequestLease, unauthenticated_limiter
from dragoman.gateway.request import RequestContext
from dragoman.gateway.response_writer import ResponseWriter
from dragoman.gateway.routes import find_route
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
        request = self._parse_head(scope)
        response = self._open_response(scope, send, request)
        body_reader = BodyReader(receive, request.headers)
        refused = True
        try:
            with RequestLease(self._bodies.byte_budget) as lease:
                self._match_route(request, response)
                identity = await self._authenticate(request, scope)
                await self._read_body(request, identity, scope, body_reader, lease)
                refused = False
                await self._run_handler(request, response, receive, task)
        except ClientDisconnect as disconnect:
            request.recorder.client_disconnected = True
            if isinstance(disconnect, IncompleteBody):  # a client that closed only its side still reads
                await response.reply(request.dialect.encode_error(InvalidRequest("the body broke off")))
        except asyncio.CancelledError:
            if response.started or not self.gateway.draining:
                raise
            await _send_error(request, response, _stopping_error())
        except Exception as error:
            await _send_error(request, response, self._client_error(error, request.recorder.id))
        finally:
            response.close()
            self.gateway.observer_hub.end(request.recorder)
        return body_reader if refused else None

    def _parse_head(self, scope: Scope) -> RequestContext:
        headers, (path, query) = request_headers(scope), path_and_query(scope)
        method: str = scope["method"]
        recorder = self.gateway.observer_hub.begin(f"req_{new_id()}", method, path, headers, query)
        return RequestContext(self.gateway, recorder, method=method, path=path, query=query, headers=headers)

    def _open_response(self, scope: Scope, send: Send, request: RequestContext) -> ResponseWriter:
        response = ResponseWriter(send, request.recorder, self.gateway.config.server.reader_idle_s)
        if self.gateway.draining and scope["http_version"].startswith("1"):
            response.add_headers((("connection", "close"),))  # so that a load balancer reconnects elsewhere
        return response

    def _match_route(self, request: RequestContext, response: ResponseWriter) -> None:
        route = find_route(request.method, request.path, request.headers, request.query)
        request.set_route(route)
        response.id_header = route.dialect.id_header
        request.recorder.dialect = route.dialect.name
        request.recorder.is_unrecorded = route.auth != "key"

    async def _authenticate(self, request: RequestContext, scope: Scope) -> Caller | SigV4Claim:
        """Check everything that the request head alone decides, before any byte of the body is read.

        Return the caller, or the claim of a signed request that can be verified only with its body.
        """
        headers, query, now_s = request.headers, request.query, time.time()
        authenticator, dashboard_auth = self.gateway.authenticator, self.gateway.dashboard_auth
        authenticator.check_origin(headers)
        check_head(scope, headers)
        if request.route.public:
            return Caller()
        match request.route.auth:
            case "key":
                return authenticator.authenticate(headers, query, now_s)
            case "dashboard":
                return await dashboard_auth.authenticate(request.method, headers, query, now_s)
            case "login":
                address = str((scope.get("client") or ("",))[0])
                return await dashboard_auth.log_in(headers, query, now_s, address)

    async def _read_body(
        self,
        request: RequestContext,
        identity: Caller | SigV4Claim,
        scope: Scope,
        body_reader: BodyReader,
        lease: RequestLease,
    ) -> None:
        """Take a concurrency slot and read the body; with it, verify the signature of a signed request.

        The body of an unauthenticated caller is read only if the request is signed, because the signature
        covers it.
        """
        authenticator = self.gateway.authenticator
        if isinstance(identity, Caller):
            self._admit(request, identity, lease)
        else:
            lease.acquire_slot(self._unauthenticated, "")
        if request.has_body:
            authenticator.check_content_type(request.headers)
            is_authenticated = isinstance(identity, Caller)
            request.body = await self._bodies.read(body_reader, lease, authenticated=is_authenticated)
        if isinstance(identity, SigV4Claim):
            caller = authenticator.verify_signature(identity, raw_head(scope), request.body)
            self._admit(request, caller, lease)

    def _admit(self, request: RequestContext, caller: Caller, lease: RequestLease) -> None:
        """Take a concurrency slot for the caller and check its role."""
        if not request.route.public:
            lease.acquire_slot(self._concurrency, caller.scope)
        if request.route.admin:
            self.gateway.authenticator.check_admin(caller)
        request.caller = caller

    async def _run_handler(
        self, request: RequestContext, response: ResponseWriter, receive: Receive, task: asyncio.Task[None]
    ) -> None:
        request.remove_credentials()
        request.recorder.caller = request.caller.scope
        request.recorder.on_request_body(request.body)
        await run_until_disconnect(task, request.route.handler(request, response), response, receive)

    def _client_error(self, error: Exception, request_id: str) -> DragomanError:
        """Return the error that the client gets, without secrets; details of an internal error are only logged."""
        if isinstance(error, DragomanError):
            return self.gateway.redactor.redact_error(error)
        _log.exception("request %s failed", request_id)
        return DragomanError(f"Dragoman made a mistake; the log has the details of {request_id}")


def _stopping_error() -> DragomanError:
    return DragomanError("the gateway is being stopped", kind="overloaded", retry_after_s=2)


async def _send_error(request: RequestContext, response: ResponseWriter, error: DragomanError) -> None:
    request.recorder.on_error(error)
    if response.started:  # the relay reports failures inside a stream itself; here only an abort is left
        raise error
    response.id_header = request.dialect.id_header
    await response.reply(request.dialect.encode_error(error))


@asynccontextmanager
async def open_gateway_app(config: Config, admin_keys: tuple[str, ...]) -> AsyncIterator[GatewayApp]:
    """Open the application; its state is in `config.home`, which must exist."""
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
    """Without a key, answer from the emulator: on a loopback port of its own, called like Google (decision 5)."""
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
