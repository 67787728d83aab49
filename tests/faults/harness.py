"""A gateway on a free port of this machine, and a Google behind it that does exactly what a test says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec

from dragoman.config import Config, ServerConfig, UpstreamConfig
from dragoman.gateway.app import GatewayApp
from dragoman.gateway.context import Gateway
from dragoman.http.sse import SseDecoder
from dragoman.process.http_server import HttpServer
from dragoman.process.serve import bind, url_of
from dragoman.store import MemoryStore, Store

KEY = "dgm-test-key-of-sufficient-length"
GOOGLE_KEY = "AIza-the-gateways-own"
TOOLS = [
    {"name": "get_weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}
]


class Arrived(msgspec.Struct):
    """One request as the fake Google saw it."""

    path: str
    headers: dict[str, str]
    body: Any


class FakeGoogle:
    """Answers request number n with `script[n]` (the last one again and again)."""

    def __init__(self, *script: Callable[[asyncio.StreamWriter], Awaitable[None]]) -> None:
        self._script = script
        self.arrived: list[Arrived] = []
        self.hung_up = asyncio.Event()

    def answer_to(self, arrived: Arrived) -> Callable[[asyncio.StreamWriter], Awaitable[None]]:
        del arrived  # by number here; a subclass may look
        return self._script[min(len(self.arrived), len(self._script)) - 1]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            self.hung_up.set()
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:]) if name
        }
        body = await reader.readexactly(int(headers["content-length"]))
        self.arrived.append(Arrived(head[0].split()[1], headers, json.loads(body, parse_int=_whole)))
        answering = asyncio.ensure_future(self.answer_to(self.arrived[-1])(writer))
        leaving = asyncio.ensure_future(reader.read(1))
        done, _ = await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if leaving in done and not answering.done():
            self.hung_up.set()
            answering.cancel()
            return False
        leaving.cancel()
        await asyncio.wait({leaving})
        await answering
        return not writer.is_closing()


def _whole(digits: str) -> int:
    """Python refuses to read what is longer; how long it was does not matter here."""
    return int(digits[:4000])


def chunk(*parts: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10}
    body = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m", "responseId": "r", **more}
    return b"data: %b\r\n\r\n" % json.dumps(body).encode()


HELLO = chunk({"text": "Hello"}) + chunk({"text": ""}, finish="STOP")
EMPTY = chunk({"text": ""}, finish="STOP")
MALFORMED = chunk(finish="MALFORMED_FUNCTION_CALL")


def streams(
    *pieces: bytes, pause_s: float = 0.0, cut: bool = False
) -> Callable[[asyncio.StreamWriter], Awaitable[None]]:
    """A 200 event stream; `cut` breaks the connection instead of ending it."""

    async def act(writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        for piece in pieces:
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
            await asyncio.sleep(pause_s)
        if cut:
            writer.close()
            return
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    return act


def refuses(status: int, message: str = "no", *details: dict[str, Any], body: bytes | None = None) -> Any:
    error = {"code": status, "message": message, "status": "X", "details": list(details)}
    payload = body if body is not None else json.dumps({"error": error}).encode()

    async def act(writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 %d X\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (
            status,
            len(payload),
        )
        writer.write(head + payload)
        await writer.drain()

    return act


def answers(body: dict[str, Any]) -> Any:
    return refuses(200, body=json.dumps(body).encode())


async def silence(_writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(3600)


class Running(msgspec.Struct):
    url: str
    app: GatewayApp
    session: aiohttp.ClientSession
    headers: dict[str, str]

    async def post(self, path: str = "/v1/messages", **body: Any) -> aiohttp.ClientResponse:
        return await self.session.post(self.url + path, json=body, headers=self.headers)

    async def messages(self, *, stream: bool = True, **more: Any) -> aiohttp.ClientResponse:
        base = {
            "model": "claude-sonnet-4-5",
            "max_tokens": 9000,
            "messages": [{"role": "user", "content": "hi"}],
        }
        return await self.post(**{**base, "tools": TOOLS, "stream": stream, **more})


@asynccontextmanager
async def serving(app: Any, settings: ServerConfig | None = None) -> AsyncIterator[str]:
    """Serve an ASGI application as the gateway does; gives the base URL."""
    settings = settings or ServerConfig()
    listener = bind("127.0.0.1", 0, settings)
    url = url_of(listener)
    server = HttpServer(app, listener, settings)
    server.start()
    try:
        yield url
    finally:
        for task in getattr(app, "running", ()):
            task.cancel()
        await server.close(1.0)


@asynccontextmanager
async def gateway(
    google: FakeGoogle,
    *,
    server: Any = None,
    upstream: Any = None,
    keys: tuple[str, ...] = (KEY,),
    admin_keys: tuple[str, ...] | None = None,
    store: Store | None = None,
    **top: Any,
) -> AsyncIterator[Running]:
    fake = await asyncio.start_server(google.serve, "127.0.0.1", 0)
    port = fake.sockets[0].getsockname()[1]
    there = {"base_url": f"http://127.0.0.1:{port}", "api_key": GOOGLE_KEY}
    config = Config(
        server=ServerConfig(**(server or {})), upstream=UpstreamConfig(**{**there, **(upstream or {})}), **top
    )
    admins = keys if admin_keys is None else admin_keys  # as for the key that is made at the first start
    app = GatewayApp(Gateway(config, store or MemoryStore(), keys=keys, admin_keys=admins))
    try:
        async with serving(app, config.server) as url, aiohttp.ClientSession() as session:
            yield Running(url, app, session, {"authorization": f"Bearer {KEY}"})
    finally:
        await app.gateway.close()
        fake.close()


async def events_of(response: aiohttp.ClientResponse) -> list[dict[str, Any]]:
    decoder = SseDecoder()
    events = decoder.feed(await response.read()) + decoder.close()
    return [json.loads(event.data) for event in events]


def types_of(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


def text_of(events: list[dict[str, Any]]) -> str:
    return "".join(
        event["delta"].get("text", "") for event in events if event["type"] == "content_block_delta"
    )
