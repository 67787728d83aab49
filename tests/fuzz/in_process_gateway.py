"""The whole gateway in this process, without a socket: requests in, answers out, the emulator for a Google."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, MutableMapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import msgspec

from dragoman.config import Config, ServerConfig, UpstreamConfig
from dragoman.emulator import create_emulator
from dragoman.gateway.app import GatewayApp
from dragoman.gateway.asgi import AsgiApp
from dragoman.gateway.context import Gateway
from dragoman.store import MemoryStore

KEY = "dgm-fuzzing-key-of-sufficient-length"
_PATIENCE_S = 30.0


class Answer(msgspec.Struct, frozen=True):
    status: int
    headers: dict[str, str]
    body: bytes


class InProcessResponse:
    """An answer of the emulator's, as the relay reads it."""

    def __init__(self, answer: Answer) -> None:
        self.status, self.headers = answer.status, answer.headers
        self._left = answer.body

    async def read_some(self) -> bytes:
        data, self._left = self._left, b""
        return data

    async def read(self) -> bytes:
        return await self.read_some()

    def shorten_timeout(self) -> None:
        """It is all there already."""


class InProcessUpstream:
    """Stands where the HTTP client is: the emulator is asked as an app."""

    def __init__(self, emulator: AsgiApp) -> None:
        self._emulator = emulator

    @asynccontextmanager
    async def post(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        stream: bool,
        within_s: float | None = None,
    ) -> AsyncIterator[InProcessResponse]:
        del stream, within_s
        parts = urlsplit(url)
        asked = {"host": "emulator", "content-type": "application/json", **headers}
        yield InProcessResponse(await call(self._emulator, "POST", parts.path, parts.query, asked, body))

    async def close(self) -> None:
        return


def make_gateway() -> GatewayApp:
    """No retries: what fails is to be seen."""
    config = Config(
        server=ServerConfig(max_body_bytes=4 * 1024 * 1024),
        upstream=UpstreamConfig(kind="emulator", max_attempts=1, max_wait_s=0),
    )
    gateway = Gateway(config, MemoryStore(), keys=(KEY,), admin_keys=(KEY,), emulator_url="http://emulator")
    gateway.client = InProcessUpstream(create_emulator(seed="fuzz"))  # type: ignore[assignment]
    return GatewayApp(gateway)


async def call(
    app: AsgiApp, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
) -> Answer:
    """One request; whatever is raised through the app is raised here."""
    scope: MutableMapping[str, Any] = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode("utf-8", "surrogateescape"),
        "query_string": query.encode("utf-8", "replace"),
        "headers": [
            (name.lower().encode("latin-1", "replace"), value.encode("latin-1", "replace"))
            for name, value in headers.items()
        ],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
    }
    pieces = [{"type": "http.request", "body": body, "more_body": False}]
    answer: dict[str, Any] = {"status": 0, "headers": [], "body": b""}

    async def receive() -> MutableMapping[str, Any]:
        if pieces:
            return pieces.pop()
        await asyncio.sleep(3600)
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            assert not answer["status"], "two answers to one request"
            answer.update(status=message["status"], headers=message["headers"])
        else:
            answer["body"] += message.get("body", b"")

    async with asyncio.timeout(_PATIENCE_S):
        await app(scope, receive, send)
    named = {name.decode("latin-1"): value.decode("latin-1") for name, value in answer["headers"]}
    return Answer(answer["status"], named, answer["body"])
