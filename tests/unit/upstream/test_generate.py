"""One call of the Gemini API over a real socket: events as they arrive, and Google's errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

import pytest

from dragoman.dialects import gemini
from dragoman.dialects.base import Target
from dragoman.errors import UpstreamError
from dragoman.ir import Event, Finished, Message, Request, Text, TextDelta
from dragoman.upstream.client import UpstreamClient
from dragoman.upstream.generate import generate_events, raise_for_status

CHUNK = b'data: {"candidates":[{"content":{"parts":[{"text":"%b"}]}}]}\r\n\r\n'
END = b'data: {"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"totalTokenCount":2}}\r\n\r\n'
OK = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
ERROR_BODY = b'{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}'
ERROR = b"HTTP/1.1 429 Too Many\r\nretry-after: 7\r\ncontent-length: %d\r\n\r\n" % len(ERROR_BODY)


@asynccontextmanager
async def server(answer: bytes, left: asyncio.Event | None = None) -> AsyncIterator[str]:
    """Answer each request with these bytes; with `left`, keep the response open until the client leaves."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        if left is not None:
            try:
                while await reader.read(4096):
                    pass
            except ConnectionError:
                pass
            left.set()
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/"
    finally:
        listener.close()


@pytest.fixture
async def client() -> AsyncIterator[UpstreamClient]:
    client = UpstreamClient(connect_timeout_s=5, idle_timeout_s=5, total_timeout_s=30)
    yield client
    await client.close()


def generate(client: UpstreamClient, url: str) -> AsyncGenerator[Event]:
    request = Request(model="m", messages=(Message(role="user", parts=(Text(text="hi"),)),))
    encoded = gemini.encode_request(request, Target(model="gemini-2.5-flash"), lambda: "id")
    return generate_events(client, url, {}, encoded, stream=True)


async def test_the_events_of_an_answer_end_with_finished(client: UpstreamClient) -> None:
    async with server(OK + CHUNK % b"Hel" + CHUNK % b"lo" + END) as url:
        events = [event async for event in generate(client, url)]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Hello"
    assert isinstance(events[-1], Finished)


async def test_an_error_status_raises_the_error_of_google(client: UpstreamClient) -> None:
    async with server(ERROR + ERROR_BODY) as url:
        with pytest.raises(UpstreamError, match="slow down") as caught:
            await anext(generate(client, url))
    assert (caught.value.kind, caught.value.status, caught.value.retry_after_s) == ("rate_limit", 429, 7)


async def test_closing_the_iterator_closes_the_connection(client: UpstreamClient) -> None:
    left = asyncio.Event()
    async with server(OK + CHUNK % b"Hel", left) as url:
        async with aclosing(generate(client, url)) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    break
        async with asyncio.timeout(5):
            await left.wait()


async def test_the_body_of_an_error_can_be_captured(client: UpstreamClient) -> None:
    captured: list[bytes] = []
    async with server(ERROR + ERROR_BODY) as url, client.post(url, {}, b"{}", stream=True) as response:
        with pytest.raises(UpstreamError):
            await raise_for_status(response, captured.append)
    assert captured == [ERROR_BODY]


async def test_a_good_status_leaves_the_body_unread(client: UpstreamClient) -> None:
    async with server(OK + b"hi") as url, client.post(url, {}, b"{}", stream=True) as response:
        await raise_for_status(response)
        assert await response.read() == b"hi"
