"""Who is told of what, and when: of what went well many at once, of what did not at once; nobody reads old numbers."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.config import Config, ObserveConfig
from dragoman.dialects import CLIENTS
from dragoman.errors import InvalidRequest
from dragoman.gateway.telemetry import observer_hub as watching
from dragoman.gateway.telemetry.observer_hub import ObserverHub
from dragoman.gateway.telemetry.request_recorder import RequestRecorder
from dragoman.ids import new_id
from dragoman.observe.metrics import REQUESTS
from dragoman.redact import Redactor
from dragoman.store import MemoryStore
from dragoman.translation.exchange import Exchange
from tests.record_collector import RecordCollector


@asynccontextmanager
async def watch_of(home: str = "", **observe: Any) -> AsyncIterator[tuple[ObserverHub, RecordCollector]]:
    config = Config(home=home, observe=ObserveConfig(**observe))
    watch, ear = ObserverHub(config, Redactor(), MemoryStore().ledger), RecordCollector()
    watch.observers = (*watch.observers, ear)
    yield watch, ear
    await watch.close()


def begin(watch: ObserverHub, name: str = "one", **headers: str) -> RequestRecorder:
    return watch.begin(name, "POST", "/v1/messages", headers, {})


def requests_of(watch: ObserverHub) -> float:
    return sum(one.value for one in watch.metrics() if one.metric == REQUESTS.name)


async def test_what_went_well_is_told_soon_and_in_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_PAUSE_S", 0.02)
    async with watch_of() as (watch, ear):
        for name in ("a", "b", "c"):
            watch.end(begin(watch, name))
        assert ear.records == []
        async with asyncio.timeout(5):
            while not ear.records:
                await asyncio.sleep(0.005)
        assert [record.id for record in ear.records] == ["a", "b", "c"]
        watch.end(begin(watch, "d"))
        async with asyncio.timeout(5):
            while len(ear.records) < 4:
                await asyncio.sleep(0.005)


async def test_what_failed_is_told_at_once_and_what_ended_before_it_comes_first() -> None:
    async with watch_of() as (watch, ear):
        for name, spoil in (("well", False), ("failed", True)):
            trail = begin(watch, name)
            if spoil:
                trail.on_error(InvalidRequest("no"))
            watch.end(trail)
        assert [record.id for record in ear.records] == ["well", "failed"]
        left = begin(watch, "left")
        left.client_disconnected = True
        watch.end(left)
        assert ear.records[-1].left


@pytest.mark.parametrize("observe", [{"log": "all"}, {"capture": "all"}, {"capture": "errors"}])
async def test_whoever_waits_for_a_line_or_a_capture_does_not_wait(observe: Any, tmp_path: Path) -> None:
    async with watch_of(str(tmp_path), **observe) as (watch, ear):
        watch.end(begin(watch))
        assert len(ear.records) == 1


async def test_whoever_asks_for_numbers_gets_all_of_them(tmp_path: Path) -> None:
    for home in ("", str(tmp_path)):
        async with watch_of(home) as (watch, _):
            for _ in range(3):
                watch.end(begin(watch))
            assert requests_of(watch) == 3


async def test_other_workers_see_what_was_counted_before_the_writing(tmp_path: Path) -> None:
    async with watch_of(str(tmp_path)) as (watch, ear):
        watch.end(begin(watch))
        watch._publish()
        assert len(ear.records) == 1
        assert any(b"dragoman_requests_total" in path.read_bytes() for path in tmp_path.rglob("*.json"))


async def test_nothing_is_lost_at_the_end() -> None:
    async with watch_of() as (watch, ear):
        watch.end(begin(watch))
    assert len(ear.records) == 1


async def test_a_busy_gateway_does_not_let_them_pile_up() -> None:
    async with watch_of() as (watch, ear):
        for _ in range(watching._BATCH):
            assert not ear.records
            watch.end(begin(watch))
        assert len(ear.records) == watching._BATCH


async def test_one_that_cannot_be_told_of_takes_no_other_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with watch_of() as (watch, ear):
        bad = begin(watch, "bad")
        monkeypatch.setattr(bad, "_summary", None)
        for trail in (bad, begin(watch, "good")):
            watch.end(trail)
        watch.flush()
        assert [record.id for record in ear.records] == ["good"]


async def test_j_what_a_request_said_is_let_go_of_before_anybody_is_told() -> None:
    """Bodies may be as large as the memory for those that are being answered."""
    async with watch_of() as (watch, ear):
        exchange = Exchange(CLIENTS["anthropic"], new_id=new_id)
        exchange.decode(
            b'{"model":"claude-x","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}', {}
        )
        trail = begin(watch)
        trail.on_exchange(exchange)
        alive = weakref.ref(exchange)
        watch.end(trail)
        del exchange, trail
        gc.collect()
        assert alive() is None
        watch.flush()
        assert ear.records[0].asked_model == "claude-x"


async def test_q11_what_is_noted_of_a_head_holds_no_secret() -> None:
    async with watch_of() as (watch, _):
        secret = "sk-ant-" + "x" * 30
        headers = {"user-agent": f"curl {secret}", "traceparent": secret}
        noted, _ = watch.begin("one", "GET", f"/key/{secret}", headers, {}).build_record()
        assert secret not in repr(noted)
        assert noted.trace == ""
        headers = {"user-agent": "a" * 200, "traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}
        long, _ = watch.begin("two", "GET", "/", headers, {}).build_record()
        assert (len(long.client), long.trace) == (80, f"00-{'a' * 32}-{'b' * 16}-01")
