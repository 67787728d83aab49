"""The emulator as an ASGI application.

This module does the I/O and reads the clock (through `make_request`). Everything that it calls is a pure
function of its arguments.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from dragoman.emulator.director import Director
from dragoman.emulator.http_messages import ConnectionAction, HttpResponse, Wait, header_fields, make_request
from dragoman.emulator.service import EmulatorService

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]


class ConnectionCut(Exception):
    """Raised out of the application to abort the connection.

    An ASGI server closes the connection when the application raises in the middle of a response. If the
    response has not started, the server answers with status 500 instead.
    """


class _ClientDisconnected(Exception):
    """The client disconnected, so the rest of the response is not sent."""


def create_emulator(*, seed: str = "dragoman", director: Director | None = None) -> AsgiApp:
    """Return an ASGI application that emulates the Gemini API without network access.

    Emulators with the same seed accept each other's thought signatures.
    """
    service = EmulatorService(seed, director)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _handle_lifespan(receive, send)
        elif scope["type"] == "http":
            try:
                body = await _read_body(receive)
                headers = [
                    (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
                ]
                query = scope.get("query_string", b"").decode("latin-1")
                http_request = make_request(scope["method"], scope["path"], query, headers, body)
                await _send_response(service.handle(http_request), receive, send)
            except _ClientDisconnected:
                return

    return app


async def _handle_lifespan(receive: Receive, send: Send) -> None:
    while True:
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return


async def _read_body(receive: Receive) -> bytes:
    pieces: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _ClientDisconnected
        pieces.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(pieces)


async def _send_response(response: HttpResponse, receive: Receive, send: Send) -> None:
    for action in response.actions_before_head:
        await _perform(action, receive)
    headers = [
        (name.encode("latin-1"), value.encode("latin-1", "replace"))
        for name, value in header_fields(response)
    ]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    for action in response.actions:
        if isinstance(action, bytes):
            await send({"type": "http.response.body", "body": action, "more_body": True})
        else:
            await _perform(action, receive)
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _perform(action: ConnectionAction, receive: Receive) -> None:
    """Wait, or raise `_ClientDisconnected` when the client disconnects first.

    An ASGI application can neither reset a connection nor close the listening socket, so `CloseConnection` and
    `RefuseConnections` both raise `ConnectionCut`.
    """
    if not isinstance(action, Wait):
        raise ConnectionCut
    leaving = asyncio.ensure_future(_wait_for_disconnect(receive))
    try:
        done, _ = await asyncio.wait({leaving}, timeout=action.seconds)
    finally:
        leaving.cancel()
    if done:
        raise _ClientDisconnected


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
