"""Our own process is stopped, killed and started again; nothing is lost."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.e2e.gateway import GATEWAY_KEY, Gateway
from tests.faults.harness import TOOLS, FakeGoogle, chunk, events_of, silence, streams, text_of, types_of
from tests.requirements import require_program

SIGNATURE = "EjQKMgEMOdbHO0Gd+c9Mxk4ELwPGbpCEcp2mFfYYLix2UVtBH3fL8GECc4+JITVnHF4qZDsA"
CALL = {
    "functionCall": {"name": "get_weather", "args": {"city": "Oslo"}, "id": "abcd1234"},
    "thoughtSignature": SIGNATURE,
}
ASK: dict[str, Any] = {
    "model": "gemini-3-flash-preview",
    "max_tokens": 9000,
    "tools": TOOLS,
    "stream": True,
    "messages": [{"role": "user", "content": "weather in Oslo?"}],
}


@asynccontextmanager
async def _process(home: Path, google: FakeGoogle) -> AsyncIterator[Gateway]:
    server = await asyncio.start_server(google.serve, "127.0.0.1", 0)
    gateway = Gateway(home, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    await asyncio.to_thread(gateway.start)
    try:
        yield gateway
    finally:
        gateway.kill()
        server.close()


async def _ask(gateway: Gateway, body: dict[str, Any]) -> list[dict[str, Any]]:
    async with aiohttp.ClientSession() as session:
        response = await session.post(
            gateway.url + "/v1/messages", json=body, headers={"x-api-key": GATEWAY_KEY}
        )
        assert response.status == 200, await response.text()
        return await events_of(response)


@pytest.mark.parametrize(
    "thinking", [{"thinking": {"type": "adaptive"}}, {}], ids=["thinking", "no thinking"]
)
async def test_a11_a_signature_survives_kill_dash_nine(tmp_path: Path, thinking: dict[str, Any]) -> None:
    """Turn one, kill -9, a new process on the same home, turn two: the signature is where it was."""
    google = FakeGoogle(
        streams(chunk(CALL), chunk({"text": ""}, finish="STOP")),
        streams(chunk({"text": "ok"}, finish="STOP")),
    )
    async with _process(tmp_path / "home", google) as gateway:
        events = await _ask(gateway, {**ASK, **thinking})
        gateway.kill()
        await asyncio.to_thread(gateway.restart)
        history = [*ASK["messages"], *_as_the_client_would(events, has_thinking=bool(thinking))]
        assert text_of(await _ask(gateway, {**ASK, **thinking, "messages": history})) == "ok"
    contents = google.arrived[1].body["contents"]
    assert contents[1]["parts"][0] == CALL
    assert contents[2]["parts"][0]["functionResponse"]["id"] == "abcd1234"


def _as_the_client_would(events: list[dict[str, Any]], *, has_thinking: bool) -> list[dict[str, Any]]:
    starts = [event["content_block"] for event in events if event["type"] == "content_block_start"]
    call = next(block for block in starts if block["type"] == "tool_use")
    sealed = [e["delta"]["signature"] for e in events if e.get("delta", {}).get("type") == "signature_delta"]
    assert bool(sealed) == has_thinking
    thinking = [{"type": "thinking", "thinking": "", "signature": word} for word in sealed]
    return [
        {"role": "assistant", "content": [*thinking, {**call, "input": {"city": "Oslo"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": "rain"}]},
    ]


async def test_a_stop_signal_lets_running_streams_finish(tmp_path: Path) -> None:
    pieces = [chunk({"text": f"{number} "}) for number in range(10)]
    google = FakeGoogle(streams(*pieces, chunk({"text": "end"}, finish="STOP"), pause_s=0.1))
    async with _process(tmp_path / "home", google) as gateway:
        asking = asyncio.ensure_future(_ask(gateway, ASK))
        while not google.arrived:
            await asyncio.sleep(0.01)
        stopping = asyncio.ensure_future(asyncio.to_thread(gateway.stop))
        events = await asking
        await stopping
    assert types_of(events)[-1] == "message_stop"
    assert text_of(events) == "0 1 2 3 4 5 6 7 8 9 end"


async def test_a_second_signal_does_not_wait_for_running_streams(tmp_path: Path) -> None:
    google = FakeGoogle(silence)
    async with _process(tmp_path / "home", google) as gateway:
        asking = asyncio.ensure_future(_ask(gateway, ASK))
        while not google.arrived:
            await asyncio.sleep(0.01)
        process = gateway._process
        assert process is not None
        for name in (signal.SIGINT, signal.SIGINT):
            process.send_signal(name)
            await asyncio.sleep(0.3)
        assert await asyncio.to_thread(process.wait, 20) == 0  # the patience would be 30 s
        assert "1 answer(s) are running" in gateway.log()
        await asyncio.wait({asking})
        assert asking.exception() is not None or types_of(asking.result())[-1] != "message_stop"


async def test_http2_with_prior_knowledge_is_spoken(tmp_path: Path) -> None:
    google = FakeGoogle(streams(chunk({"text": "hi"}, finish="STOP")))
    async with _process(tmp_path / "home", google) as gateway:
        headers = ["-H", "content-type: application/json", "-H", f"x-api-key: {GATEWAY_KEY}"]
        command = [
            require_program("curl"),
            "-s",
            "--http2-prior-knowledge",
            "-w",
            "\n%{http_version}",
            *headers,
        ]
        done = await asyncio.to_thread(
            subprocess.run,
            [*command, "-d", json.dumps(ASK), gateway.url + "/v1/messages"],
            capture_output=True,
            check=True,
        )
    answer, _, version = done.stdout.decode().rpartition("\n")
    assert version == "2"
    assert "message_stop" in answer
