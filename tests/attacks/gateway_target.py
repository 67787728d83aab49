"""A gateway process under attack: its memory, and a caller with a key who must not notice."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from benchmarks.procfs import tree
from tests.attacks.attacker import Attack, Outcome, run
from tests.e2e.emulator import emulator_process
from tests.e2e.gateway import GATEWAY_KEY, Gateway

MAX_MIB = 400
ATTACKER_KEY = "attacker-gateway-key-0123456789"
_PATIENCE_S = 60.0
_VICTIMS = 2
_WORDS: dict[str, Any] = {
    "model": "gemini-3.8-flash",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "hi"}],
}


class Row(msgspec.Struct, kw_only=True):
    """What one attack did to the gateway and to the victim."""

    attack: str
    before_mib: float = 0.0
    peak_mib: float = 0.0
    after_mib: float = 0.0
    failures: list[str] = []
    latencies_s: list[float] = []
    outcome: Outcome = msgspec.field(default_factory=Outcome)

    def __str__(self) -> str:
        memory = f"{self.before_mib:.0f}/{self.peak_mib:.0f}/{self.after_mib:.0f}"
        times = sorted(self.latencies_s) or [0.0]
        p50, p99 = (1000 * times[min(int(len(times) * share), len(times) - 1)] for share in (0.5, 0.99))
        sent = f"{self.outcome.sent_bytes / 2**20:.1f} MiB/{self.outcome.connections}"
        victim = f"{len(self.latencies_s)}/{len(self.failures)}"
        return f"{self.attack:<44} {memory:>12} {sent:>17} {victim:>8} {p50:>6.0f}/{p99:.0f}"


HEADER = f"{'attack':<44} {'MiB b/p/a':>12} {'sent/connections':>17} {'ok/fail':>8} p50/p99 ms"
#: Printed at the end of the run.
ROWS: list[Row] = []


class Target(msgspec.Struct):
    url: str
    pid: int

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def memory_mib(self, field: str = "VmRSS") -> float:
        return sum(_status_kib(pid, field) for pid in tree(self.pid)) / 1024

    def reset_peak(self) -> None:
        for pid in tree(self.pid):
            Path(f"/proc/{pid}/clear_refs").write_text("5")  # proc(5): the peak starts at what is used now

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))


def _status_kib(pid: int, field: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field + ":"))


@contextmanager
def gateway_process(folder: Path, **settings: str) -> Iterator[Target]:
    """`dragoman serve` in front of an emulator, which is a process of its own as well."""
    with emulator_process(folder) as emulator:
        keys = f"{GATEWAY_KEY},{ATTACKER_KEY}"
        gateway = Gateway(folder / "home", emulator.url, SERVER_KEYS=keys, **settings)
        gateway.start()
        try:
            yield Target(gateway.url, gateway.pid)
        finally:
            gateway.stop()


class Victim:
    """Asks all the time; `newcomer` opens a connection for every request."""

    def __init__(self, url: str, row: Row, *, newcomer: bool = False) -> None:
        self._url = url
        self._row = row
        self._newcomer = newcomer

    async def ask_forever(self) -> None:
        connector = aiohttp.TCPConnector(force_close=self._newcomer)
        patience = aiohttp.ClientTimeout(total=_PATIENCE_S)
        async with aiohttp.ClientSession(connector=connector, timeout=patience) as session:
            number = 0
            while True:
                number += 1
                began = time.perf_counter()
                try:
                    await self._ask(session, stream=number % 2 == 0)
                except (aiohttp.ClientError, TimeoutError, AssertionError) as error:
                    self._row.failures.append(repr(error))
                else:
                    self._row.latencies_s.append(time.perf_counter() - began)
                await asyncio.sleep(0.01)

    async def _ask(self, session: aiohttp.ClientSession, *, stream: bool) -> None:
        body, headers = {**_WORDS, "stream": stream}, {"x-api-key": GATEWAY_KEY}
        async with session.post(self._url + "/v1/messages", json=body, headers=headers) as response:
            answer = await response.read()
            assert response.status == 200, (response.status, answer)
            assert (b"message_stop" if stream else b'"stop_reason"') in answer, answer


@asynccontextmanager
async def measured(target: Target, name: str, *, newcomer: bool = False, url: str = "") -> AsyncIterator[Row]:
    """Measure what happens inside the block, and check at its end that the gateway kept its promises."""
    row = Row(attack=name)
    ROWS.append(row)
    victims = [
        asyncio.ensure_future(Victim(url or target.url, row, newcomer=newcomer).ask_forever())
        for _ in range(_VICTIMS)
    ]
    await answers(row, 10)
    row.before_mib = target.memory_mib()
    target.reset_peak()
    try:
        yield row
        await answers(row, 4)
    finally:
        for victim in victims:
            victim.cancel()
        await asyncio.wait(victims)
        row.peak_mib, row.after_mib = target.memory_mib("VmHWM"), target.memory_mib()
        print(row)
    assert not row.failures, row.failures[:5]
    assert row.peak_mib < MAX_MIB, row


async def answers(row: Row, number: int) -> None:
    """Wait for so many more answers to the victims. Two of them may belong to requests that are running already."""
    until = len(row.latencies_s) + number
    async with asyncio.timeout(2 * _PATIENCE_S):
        while len(row.latencies_s) < until and not row.failures:
            await asyncio.sleep(0.02)


#: The attacker's process; `conftest` ends it.
POOL = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))


async def attack_for(attack: Attack, port: int, seconds: float) -> Outcome:
    return await asyncio.get_running_loop().run_in_executor(POOL, run, attack, port, seconds)


async def survive(
    target: Target, name: str, attack: Attack, seconds: float = 3.0, *, newcomer: bool = False
) -> Row:
    """Attack while victims ask."""
    async with measured(target, name, newcomer=newcomer) as row:
        row.outcome = await attack_for(attack, target.port, seconds)
    assert row.outcome.connections >= attack.connections
    return row
