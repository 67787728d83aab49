"""The ledger over real connections: what tools did and how long it took, who asked, and what it cost."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.config import ObserveConfig
from dragoman.gateway.auth.authenticator import scope_of
from dragoman.observe.record import RequestRecord
from dragoman.store import LedgerEntry, MemoryStore, Store
from tests.faults.harness import HELLO, KEY, FakeGoogle, Running, chunk, events_of, gateway, refuses, streams
from tests.faults.test_gateway_tools import calls, settings
from tests.faults.test_gateway_tools import home as home

CALL = chunk(
    {"functionCall": {"name": "get_weather", "args": {"city": None}, "id": "g1"}},
    finish="STOP",
    modelVersion="gemini-2.5-flash",
)


async def noted(store: Store, count: int) -> list[RequestRecord]:
    """Oldest first."""
    lines: list[LedgerEntry] = []
    while len(lines) < count:
        await asyncio.sleep(0.02)
        lines = await store.ledger.entries(limit=99)
    records = [msgspec.json.decode(line.data, type=RequestRecord) for line in lines]
    return sorted(records, key=lambda record: record.started_s)  # lines of one millisecond are in any order


async def sums(store: Store, kind: str) -> dict[tuple[str, ...], dict[str, int]]:
    today = datetime.now(UTC).date()  # midnight may pass while we look
    yesterday = (today - timedelta(days=1)).isoformat()
    return {one.labels: one.sums for one in await store.ledger.tallies(kind, yesterday, today.isoformat())}


async def said(running: Running, **body: Any) -> list[dict[str, Any]]:
    async with await running.messages(**body) as response:
        return await events_of(response)


async def test_a_clients_tool_from_call_to_result() -> None:
    store = MemoryStore()
    async with gateway(FakeGoogle(streams(CALL), streams(HELLO)), store=store) as running:
        running.headers |= {"user-agent": "claude-cli/2.1", "x-claude-code-session-id": "s1"}
        events = await said(running)
        (call,) = [
            event["content_block"]
            for event in events
            if event.get("content_block", {}).get("type") == "tool_use"
        ]
        await asyncio.sleep(0.05)  # the tool
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": "no", "is_error": True}
        history = [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ]
        await said(running, messages=history)
        await said(running, messages=history)  # the same result once more was measured before
        records = await noted(store, 3)
        tools, totals, sessions = [await sums(store, kind) for kind in ("tool", "total", "session")]
    first, second, third = ([one.ms for one in record.results] for record in records)
    assert first == []
    assert second[0] is not None
    assert second[0] >= 40  # of 50, as far as timers are exact
    assert third == [None]
    assert tools["get_weather", "client"] == {
        "calls": 1,
        "repairs": 1,  # null for what is optional
        "results": 2,
        "failed": 2,
        "bytes": 4,
        "ms": second[0],
        "timed": 1,
    }
    (labels,) = totals
    assert labels == (scope_of(KEY), "claude-cli", "anthropic", "gemini-flash-latest")
    assert totals[labels]["requests"] == 3
    assert totals[labels]["input"] == 21
    assert totals[labels]["micro_usd"] == 10  # 7 in and 3 out of what ran behind the alias
    assert totals[labels]["unpriced"] == 2  # and of `m`, nobody knows
    assert sessions[scope_of(KEY), "s1"]["requests"] == 3


async def test_tools_of_the_gateways_own(home: Path) -> None:
    store = MemoryStore()
    google = FakeGoogle(streams(calls("wait", "broken", seconds=0.05)), streams(HELLO))
    async with gateway(google, store=store, **settings(home)) as running:
        await said(running)
        (record,) = await noted(store, 1)
        tools = await sums(store, "tool")
        async with running.session.get(running.url + "/metrics", headers=running.headers) as response:
            metrics = await response.text()
    assert record.own_calls == ("wait", "broken")
    wait, broken = record.runs
    assert (wait.name, wait.failed, broken.failed) == ("wait", False, True)
    assert 40 <= wait.ms <= record.total_ms
    assert wait.size == len("waited")
    assert wait.at_ms >= record.attempts[0].at_ms
    assert record.attempts[1].at_ms >= wait.at_ms + wait.ms - 1
    assert tools["wait", "gateway"] == {"calls": 1, "results": 1, "bytes": 6, "ms": wait.ms, "timed": 1}
    assert tools["broken", "gateway"]["failed"] == 1
    assert 'dragoman_tool_results_total{tool="broken",by="gateway",outcome="failed"} 1' in metrics
    assert 'dragoman_tool_seconds_count{by="gateway"} 2' in metrics
    assert "retries" not in metrics  # a second round is none


async def test_refusals_are_noted_and_strangers_are_not() -> None:
    store = MemoryStore()
    async with gateway(FakeGoogle(refuses(400, "my secret plan")), store=store) as running:
        async with running.session.post(running.url + "/v1/messages", json={}) as response:
            assert response.status == 401
        async with running.session.get(running.url + "/v1/models", headers=running.headers) as response:
            assert response.status == 200
        await said_plainly(running, messages=[{"role": "user", "content": "my secret plan"}])
        await said_plainly(running, messages="nonsense")
        records = await noted(store, 2)
    assert [(record.status, record.error) for record in records] == [(400, "invalid_request")] * 2
    lines = await store.ledger.entries(limit=99)
    assert len(lines) == 2
    assert not any(b"secret plan" in line.data for line in lines)


async def said_plainly(running: Running, **body: Any) -> None:
    async with await running.messages(**body) as response:
        await response.read()


async def test_a_gateway_that_stops_writes_what_it_knows() -> None:
    store = MemoryStore()
    async with gateway(FakeGoogle(streams(HELLO)), store=store) as running:
        await said(running)
    assert len(await store.ledger.entries(limit=99)) == 1


@pytest.mark.parametrize("wanted", [True, False])
async def test_the_ledger_can_be_switched_off(wanted: bool) -> None:
    store = MemoryStore()
    observe = ObserveConfig(ledger=wanted)
    async with gateway(FakeGoogle(streams(HELLO)), store=store, observe=observe) as running:
        await said(running)
    assert len(await store.ledger.entries(limit=99)) == wanted


async def test_open_streams_are_counted_while_they_are_open() -> None:
    async with gateway(FakeGoogle(streams(chunk({"text": "a"}), HELLO, pause_s=3600))) as running:
        response = await running.messages()
        await response.content.read(10)
        async with running.session.get(running.url + "/metrics", headers=running.headers) as asked:
            text = await asked.text()
        response.close()
    assert "dragoman_open_streams 1" in text.splitlines()
    assert "dragoman_open_requests 2" in text.splitlines()


async def test_siblings_see_the_last_numbers_soon(tmp_path: Path) -> None:
    """Also those of the second that ended with nobody asking any more."""
    async with gateway(FakeGoogle(streams(HELLO)), home=str(tmp_path)) as running:
        for _ in range(3):
            await said(running)
        (file,) = (tmp_path / "metrics").glob("[0-9]*.json")
        while True:
            series = {
                (one["metric"], tuple(one["labels"])): one["value"] for one in json.loads(file.read_text())
            }
            counted = series.get(("dragoman_requests_total", ("anthropic", "gemini-flash-latest", "ok")))
            if counted == 3 and series["dragoman_open_requests", ()] == 0:
                break
            await asyncio.sleep(0.02)
