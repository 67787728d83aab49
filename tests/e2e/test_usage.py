"""What several workers answered, read by the command while they run and after they are gone."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiohttp

from tests.e2e.gateway import GATEWAY_KEY, Gateway

REQUESTS = 24
HEADERS = {"x-api-key": GATEWAY_KEY, "user-agent": "tester/1.0", "x-claude-code-session-id": "s1"}
ASK = {"model": "gemini-2.5-flash", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]}


def usage(home: Path, by: str) -> dict[str, Any]:
    env = {"PATH": os.environ["PATH"], "DRAGOMAN_HOME": str(home), "DRAGOMAN_GATEWAY_KEY": GATEWAY_KEY}
    command = [sys.executable, "-m", "dragoman", "usage", "--json", "--days", "2", "--by", by]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


async def ask_once(url: str) -> None:
    """Over a connection of its own: any worker may get it."""
    async with (
        aiohttp.ClientSession(headers=HEADERS) as session,
        session.post(f"{url}/v1/messages", json=ASK) as response,
    ):
        assert response.status == 200, await response.text()
        await response.read()


async def test_the_requests_of_all_workers(tmp_path: Path) -> None:
    home = tmp_path / "home"
    gateway = Gateway(home, SERVER_WORKERS="2")
    await asyncio.to_thread(gateway.start)
    try:
        await asyncio.gather(*(ask_once(gateway.url) for _ in range(REQUESTS)))
        while usage(home, "model")["total"].get("requests", 0) < REQUESTS:
            await asyncio.sleep(0.2)
        await ask_once(gateway.url)
    finally:
        await asyncio.to_thread(gateway.stop)
    (row,) = usage(home, "model")["rows"]
    assert (row["model"], row["requests"]) == ("gemini-2.5-flash", REQUESTS + 1), (
        "what waited was written at the end"
    )
    assert row["cost_usd"] > 0
    (session,) = usage(home, "session")["rows"]
    assert (session["key"], session["session"]) == ("DRAGOMAN_GATEWAY_KEY", "s1")
    assert [row["client"] for row in usage(home, "client")["rows"]] == ["tester"]
