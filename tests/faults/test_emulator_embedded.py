"""The emulator inside the gateway's server: ASGI breaks an answer as well as it can, and quietly."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from dragoman.emulator import create_emulator
from dragoman.emulator.faults import FAULT_HEADER, FaultDirector
from tests.faults.harness import serving

MODEL = "gemini-3.8-flash"
ASK = {"contents": [{"role": "user", "parts": [{"text": "say " + "word " * 40}]}]}


@asynccontextmanager
async def embedded(app: Any) -> AsyncIterator[str]:
    async with serving(app) as url:
        yield f"{url}/v1beta/models/{MODEL}"


@pytest.mark.parametrize(
    "method", ["generateContent", "streamGenerateContent?alt=sse", "streamGenerateContent"]
)
@pytest.mark.parametrize("fault", ["cut_after=1", "cut_after=600", "cut_after=1000000", "reset_after=600"])
async def test_a_cut_answer_is_seen_as_broken_and_nobody_complains(
    fault: str, method: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    async with embedded(create_emulator(director=FaultDirector())) as url, aiohttp.ClientSession() as session:
        response = await session.post(f"{url}:{method}", json=ASK, headers={FAULT_HEADER: fault})
        assert response.status == 200
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("fault", ["reset", "refused"])
async def test_before_the_head_a_server_error_is_all_that_asgi_has(fault: str) -> None:
    async with embedded(create_emulator(director=FaultDirector())) as url, aiohttp.ClientSession() as session:
        response = await session.post(f"{url}:generateContent", json=ASK, headers={FAULT_HEADER: fault})
        assert response.status == 500


async def test_a_wait_is_waited_and_a_client_that_leaves_ends_it() -> None:
    ended = asyncio.Event()
    emulator = create_emulator(director=FaultDirector())

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await emulator(scope, receive, send)
        ended.set()

    async with embedded(app) as url, aiohttp.ClientSession() as session:
        address = f"{url}:streamGenerateContent?alt=sse"
        response = await session.post(address, json=ASK, headers={FAULT_HEADER: "silence=0.01"})
        assert b'"finishReason":"STOP"' in await response.read()
        ended.clear()
        response = await session.post(address, json=ASK, headers={FAULT_HEADER: "silence=3600"})
        assert await response.content.readany()
        assert not ended.is_set()
        response.close()
        await ended.wait()
