"""The emulator inside the gateway's server, below a path of its own; its bodies are bounded like everybody's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from dragoman.config import ServerConfig
from dragoman.dialects.gemini.client import GeminiClient
from dragoman.errors import DragomanError
from dragoman.server.bodies import Bodies, Intake
from dragoman.server.http import ClientLeft, Receive, Scope, Send, headers_of, turn_of
from dragoman.server.places import Stay

App = Callable[[Scope, Receive, Send], Awaitable[None]]

EMULATOR_PREFIX = "/_emulator"


class EmulatorMount:
    """Has room of its own: what the gateway asks itself is held by whoever asked the gateway, too."""

    def __init__(self, emulator: App, server: ServerConfig) -> None:
        self._emulator = emulator
        self._bodies = Bodies(server)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        turn = turn_of(scope)
        intake = Intake(receive, headers_of(scope), turn.take_body if turn is not None else None)
        with Stay(self._bodies.room) as stay:
            try:
                again = _Again(await self._bodies.read(intake, stay, proven=True), receive)
            except ClientLeft:
                return
            except DragomanError as error:
                await _refuse(send, error)
            else:
                inside = {**scope, "path": scope["path"].removeprefix(EMULATOR_PREFIX)}
                await self._emulator(inside, again, send)
                return
        await self._bodies.discard(intake)


class _Again:
    """Says the body once more, then what comes behind it."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> MutableMapping[str, Any]:
        body, self._body = self._body, None
        if body is None:
            return await self._receive()
        return {"type": "http.request", "body": body, "more_body": False}


async def _refuse(send: Send, error: DragomanError) -> None:
    reply = GeminiClient().encode_error(error)
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in reply.headers]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body, "more_body": False})
