"""`dragoman.asgi:app` on granian, uvicorn and hypercorn: the application needs nothing of one server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import pytest

from tests.e2e.gateway import ASGI_SERVERS, GATEWAY_KEY, Gateway
from tests.e2e.sdk_rounds import MODES, Mode, connect, play_round
from tests.faults.harness import FakeGoogle, chunk, streams

ADD = {
    "name": "add",
    "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
}


@pytest.fixture(params=ASGI_SERVERS)
def server(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def gateway(server: str, tmp_path: Path) -> Iterator[Gateway]:
    gateway = Gateway(tmp_path / "home", server=server)
    gateway.start()
    yield gateway
    gateway.stop()
    assert "Traceback" not in gateway.log()


@pytest.mark.parametrize("mode", MODES)
def test_a_tool_round_with_the_vendors_sdk(gateway: Gateway, mode: Mode) -> None:
    play_round(connect(gateway), mode, [ADD], "add", ({"a": 1, "b": 2}, {"a": 3, "b": 4}))


def test_errors_are_in_the_callers_dialect(gateway: Gateway) -> None:
    with pytest.raises(anthropic.BadRequestError, match="invalid_request_error"):
        connect(gateway).messages.create(model="claude-sonnet", max_tokens=0, messages=[])


async def test_a_client_that_leaves_cancels_the_upstream_call(server: str, tmp_path: Path) -> None:
    google = FakeGoogle(streams(chunk({"text": "Hel"}), *[chunk({"text": "lo"})] * 600, pause_s=0.1))
    fake = await asyncio.start_server(google.serve, "127.0.0.1", 0)
    port = fake.sockets[0].getsockname()[1]
    gateway = Gateway(tmp_path / "home", f"http://127.0.0.1:{port}", server)
    await asyncio.to_thread(gateway.start)
    try:
        await _read_a_little_and_leave(gateway.url)
        async with asyncio.timeout(20):
            await google.hung_up.wait()
    finally:
        await asyncio.to_thread(gateway.stop)
        fake.close()


async def _read_a_little_and_leave(url: str) -> None:
    reader, writer = await asyncio.open_connection(*url.removeprefix("http://").split(":"))
    asked: dict[str, Any] = {"model": "x", "max_tokens": 9, "stream": True}
    body = json.dumps({**asked, "messages": [{"role": "user", "content": "hi"}]}).encode()
    head = f"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: {GATEWAY_KEY}\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    await reader.readuntil(b"Hel")
    writer.transport.abort()
