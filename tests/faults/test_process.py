"""Our own process is stopped, killed and started again; nothing is lost."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.faults.harness import GOOGLE_KEY, TOOLS, FakeGoogle, chunk, events_of, streams, text_of, types_of
from tests.faults.process import gateway_process

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


async def _ask(url: str, key: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    async with aiohttp.ClientSession() as session:
        response = await session.post(url + "/v1/messages", json=body, headers={"x-api-key": key})
        assert response.status == 200, await response.text()
        return await events_of(response)


@pytest.mark.parametrize("thinking_kept", [True, False])
async def test_a11_a_signature_survives_kill_dash_nine(tmp_path: Path, thinking_kept: bool) -> None:
    """Turn one, kill -9, a new process on the same home, turn two: the signature is where it was."""
    google = FakeGoogle(
        streams(chunk(CALL), chunk({"text": ""}, finish="STOP")),
        streams(chunk({"text": "ok"}, finish="STOP")),
    )
    server = await asyncio.start_server(google.serve, "127.0.0.1", 0)
    env = {
        "GEMINI_BASE_URL": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}",
        "GEMINI_API_KEY": GOOGLE_KEY,
    }
    wish = {"thinking": {"type": "adaptive"}} if thinking_kept else {}
    async with gateway_process(tmp_path, env=env) as first:
        key = (tmp_path / "gateway.key").read_text().strip()
        events = await _ask(first.url, key, {**ASK, **wish})
        first.process.kill()
        first.process.wait()
    call = next(
        e["content_block"]
        for e in events
        if e["type"] == "content_block_start" and "name" in e["content_block"]
    )
    sealed = [e["delta"]["signature"] for e in events if e.get("delta", {}).get("type") == "signature_delta"]
    assert bool(sealed) == thinking_kept
    thinking = [{"type": "thinking", "thinking": "", "signature": word} for word in sealed]
    history = [
        *ASK["messages"],
        {"role": "assistant", "content": [*thinking, {**call, "input": {"city": "Oslo"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": "rain"}]},
    ]
    async with gateway_process(tmp_path, env=env) as second:
        assert text_of(await _ask(second.url, key, {**ASK, **wish, "messages": history})) == "ok"
    contents = google.arrived[1].body["contents"]
    assert contents[1]["parts"][0] == CALL
    assert contents[2]["parts"][0]["functionResponse"]["id"] == "abcd1234"
    server.close()


async def test_a_stop_signal_lets_running_streams_finish(tmp_path: Path) -> None:
    pieces = [chunk({"text": f"{number} "}) for number in range(10)]
    google = FakeGoogle(streams(*pieces, chunk({"text": "end"}, finish="STOP"), pause_s=0.1))
    server = await asyncio.start_server(google.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    env = {"GEMINI_BASE_URL": f"http://127.0.0.1:{port}", "GEMINI_API_KEY": GOOGLE_KEY}
    async with gateway_process(tmp_path, "--no-auth", env=env) as running:
        asking = asyncio.ensure_future(_ask(running.url, "", ASK))
        while not google.arrived:
            await asyncio.sleep(0.01)
        running.process.send_signal(signal.SIGTERM)
        events = await asking
        assert types_of(events)[-1] == "message_stop"
        assert text_of(events) == "0 1 2 3 4 5 6 7 8 9 end"
        assert await asyncio.to_thread(running.process.wait, 30) == 0
    server.close()


async def test_http2_with_prior_knowledge_is_spoken(tmp_path: Path) -> None:
    async with gateway_process(tmp_path) as running:
        body = json.dumps({**ASK, "stream": False})
        command = [
            "curl",
            "-s",
            "--http2-prior-knowledge",
            "-w",
            "\n%{http_version}",
            "-H",
            "content-type: application/json",
        ]
        done = await asyncio.to_thread(
            subprocess.run,
            [*command, "-d", body, running.url + "/v1/messages"],
            capture_output=True,
            check=True,
        )
    answer, _, version = done.stdout.decode().rpartition("\n")
    assert version == "2"
    assert json.loads(answer)["type"] == "message"
