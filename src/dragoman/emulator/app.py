"""The ASGI shell around the emulator: bytes and the clock come in here, everything below is pure."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

from dragoman.emulator.direct import Director
from dragoman.emulator.service import Question, Service
from dragoman.emulator.wire import Act, Answer, Cut, Wait

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]


class ConnectionCut(Exception):
    """Raised through the server to end a connection in the middle of a message, as the answer says."""


def create_emulator(*, seed: str = "dragoman", director: Director | None = None) -> AsgiApp:
    """The offline Gemini as an ASGI app; emulators with the same seed accept each other's signatures."""
    service = Service(seed, director)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
        elif scope["type"] == "http":
            body = await _read_body(receive)
            if body is not None:
                await _send_answer(service.answer(_question(scope, body)), send)

    return app


async def _live(receive: Receive, send: Send) -> None:
    while True:
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return


async def _read_body(receive: Receive) -> bytes | None:
    """The whole body, or None if the client left while sending it."""
    pieces: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        pieces.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(pieces)


def _question(scope: Scope, body: bytes) -> Question:
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    headers = {name.lower().decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    return Question(
        verb=scope["method"],
        path=scope["path"],
        alt=query.get("alt", [""])[-1],
        key=headers.get("x-goog-api-key", "") or query.get("key", [""])[-1],
        body=body,
        headers=headers,
        now=datetime.now(UTC).isoformat().replace("+00:00", "Z"),
    )


async def _send_answer(answer: Answer, send: Send) -> None:
    for act in answer.before:
        await _pause(act)
    headers = [
        (b"content-type", answer.content_type.encode()),
        (b"x-gemini-service-tier", b"standard"),
        *((name.encode(), value.encode()) for name, value in answer.headers),
    ]
    if not answer.streamed:
        headers.append((b"content-length", str(len(answer.body)).encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    for act in answer.acts:
        if isinstance(act, bytes):
            await send({"type": "http.response.body", "body": act, "more_body": True})
        else:
            await _pause(act)
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _pause(act: Act) -> None:
    if isinstance(act, Wait):
        await asyncio.sleep(act.seconds)
    elif isinstance(act, Cut):
        raise ConnectionCut
