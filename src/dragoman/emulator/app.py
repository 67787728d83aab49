"""The ASGI shell around the emulator: bytes and the clock come in here, everything below is pure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

from dragoman.emulator.service import Answer, Question, Service

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]


def create_emulator(*, seed: str = "dragoman") -> AsgiApp:
    """The offline Gemini as an ASGI app; emulators with the same seed accept each other's signatures."""
    service = Service(seed)

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
    headers = {name.lower(): value for name, value in scope["headers"]}
    header_key = headers.get(b"x-goog-api-key", b"").decode("latin-1")
    return Question(
        verb=scope["method"],
        path=scope["path"],
        alt=query.get("alt", [""])[-1],
        key=header_key or query.get("key", [""])[-1],
        body=body,
        now=datetime.now(UTC).isoformat().replace("+00:00", "Z"),
    )


async def _send_answer(answer: Answer, send: Send) -> None:
    headers = [
        (b"content-type", answer.content_type.encode()),
        (b"x-gemini-service-tier", b"standard"),
    ]
    whole = len(answer.pieces) == 1
    if whole:
        headers.append((b"content-length", str(len(answer.pieces[0])).encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    for piece in answer.pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": not whole})
    if not whole:
        await send({"type": "http.response.body", "body": b"", "more_body": False})
