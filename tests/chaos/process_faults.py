"""Faults of the gateway's own process: signals, its clock, its descriptors, its state file."""

from __future__ import annotations

import asyncio
import glob
import os
import resource
import signal
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import aiohttp
import pytest

from tests.chaos.environment import until
from tests.chaos.matrix_rows import KEPT, Act, Cell, Disaster, Expected, gone, harmless
from tests.chaos.raw_client import Client
from tests.chaos.scripted_google import Stage
from tests.e2e.gateway import GATEWAY_KEY, Gateway

_HEADERS = {"authorization": f"Bearer {GATEWAY_KEY}"}
_LIMITS = {"SERVER_PING_S": "0.3", "UPSTREAM_IDLE_TIMEOUT_S": "60", "UPSTREAM_TOTAL_TIMEOUT_S": "90"}
_STOP_S = 30.0
_CLOCK_SEEN_S = 1
_STARVED_S = 1.5
_OPEN = "dragoman_open_requests"


def require_faketime() -> str:
    found = sorted(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1"))
    if not found:
        pytest.skip("needs libfaketime: apt-get install libfaketime")
    return found[0]


class OwnProcess(Gateway):
    """`dragoman serve`, if need be by a wall clock that can be set."""

    def __init__(self, home: Path, google: str, *, own_clock: bool, **settings: str) -> None:
        super().__init__(home, google, **settings)
        self._own_clock = own_clock
        self._clock = home.with_name("clock")
        self._clock.write_text("+0\n")

    def set_clock(self, offset: str) -> None:
        self._clock.write_text(f"{offset}\n")
        time.sleep(_CLOCK_SEEN_S + 0.5)

    def _env(self) -> dict[str, str]:
        if not self._own_clock:
            return super()._env()
        clock = {
            "LD_PRELOAD": require_faketime(),
            "FAKETIME_TIMESTAMP_FILE": str(self._clock),
            "FAKETIME_CACHE_DURATION": str(_CLOCK_SEEN_S),
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        return super()._env() | clock

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def ended(self) -> int:
        """Its exit status, once it has one."""
        assert self._process is not None
        status = self._process.wait(_STOP_S)
        self._process = None
        return status

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def allow_descriptors(self, more: int | None) -> None:
        """So many more than it has, or as many as it may ask for."""
        _, hard = resource.prlimit(self.pid, resource.RLIMIT_NOFILE)
        highest = max(map(int, os.listdir(f"/proc/{self.pid}/fd"))) + 1
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, (hard if more is None else highest + more, hard))

    @property
    def state(self) -> Path:
        return self._home / "state.db"

    def let_leases_end(self) -> None:
        """As if the half minute had passed for which a dead process holds up its conversation."""
        with closing(sqlite3.connect(self.state)) as db, db:
            db.execute("UPDATE lease SET until = 0")


class ProcessWorld:
    def __init__(self, google: Stage, gateway: OwnProcess) -> None:
        self.google = google
        self.gateway = gateway

    def client(self) -> Client:
        return Client(int(self.gateway.url.rpartition(":")[2]), _HEADERS)

    async def settled(self) -> None:
        await until(lambda: self.google.answers == 0, lambda: f"{self.google.answers} at Google's")
        assert self.google.mistakes == []
        deadline = asyncio.get_running_loop().time() + _STOP_S
        while (still := await self._open_requests()) > 0:
            assert asyncio.get_running_loop().time() < deadline, f"{still} requests are still open"
            await asyncio.sleep(0.05)

    async def _open_requests(self) -> float:
        async with (
            aiohttp.ClientSession(headers=_HEADERS) as session,
            session.get(f"{self.gateway.url}/metrics") as answer,
        ):
            lines = (await answer.text()).splitlines()
        assert answer.status == 200, lines
        return sum(float(line.split()[-1]) for line in lines if line.startswith(_OPEN)) - 1  # ours


@asynccontextmanager
async def open_process(folder: Path, disaster: Disaster) -> AsyncIterator[ProcessWorld]:
    google = Stage()
    server = await asyncio.start_server(google.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    settings = {**_LIMITS, **dict(disaster.settings)}
    gateway = OwnProcess(folder / "home", url, own_clock=disaster in CLOCK, **settings)
    try:
        await asyncio.to_thread(gateway.start)
        world = ProcessWorld(google, gateway)
        yield world
        await world.settled()
        assert "Traceback" not in gateway.log()
    finally:
        gateway.kill()
        server.close()


def _at_gateway(act: Callable[[OwnProcess], None]) -> Act:
    async def strike(world: ProcessWorld) -> None:
        await asyncio.to_thread(act, world.gateway)

    return strike


def _kill(gateway: OwnProcess) -> None:
    gateway.kill()


def _restart(gateway: OwnProcess) -> None:
    gateway.let_leases_end()
    gateway.restart()


def _terminate(gateway: OwnProcess) -> None:
    gateway.signal(signal.SIGTERM)


def _restart_after_end(gateway: OwnProcess) -> None:
    assert gateway.ended() == 0
    _restart(gateway)


def _set_clock(offset: str) -> Callable[[OwnProcess], None]:
    return lambda gateway: gateway.set_clock(offset)


def _overwrite(gateway: OwnProcess) -> None:
    for path in (gateway.state, gateway.state.with_name("state.db-wal")):
        size = path.stat().st_size
        with path.open("r+b") as file:
            file.write(os.urandom(size))


def _truncate(gateway: OwnProcess) -> None:
    for path in (gateway.state, gateway.state.with_name("state.db-wal")):
        os.truncate(path, path.stat().st_size // 2 + 100)


def _start_anew(gateway: OwnProcess) -> None:
    """SQLite makes the best of what is left; if that is nothing, do as the message says."""
    gateway.kill()
    try:
        gateway.restart()
    except RuntimeError:
        assert "move it away to start anew" in gateway.log()
    else:
        return
    for path in gateway.state.parent.glob("state.db*"):
        path.rename(path.with_name(f"broken-{path.name}"))
    gateway.restart()


async def _starve_for_a_while(world: ProcessWorld) -> None:
    """Nobody can come in and nothing can be opened; those who wait at the door are let in later."""
    world.gateway.allow_descriptors(0)
    asyncio.get_running_loop().call_later(_STARVED_S, world.gateway.allow_descriptors, None)


async def _fed(world: ProcessWorld) -> None:
    """It is over by itself; nothing of it is left open once Google has hung up."""
    world.google.hang_up()


def drained(cell: Cell) -> Expected:
    """Whoever is being answered gets all of it; whoever comes too late, nobody or still an answer."""
    late = cell.phase == "between turns"
    return Expected("answer", None, "cut") if late else Expected("answer")


def hurried(cell: Cell) -> Expected:
    """An answer that does not end is cut when the time for it is over; one that has not begun becomes an error."""
    if cell.phase == "between turns":
        return drained(cell)
    return Expected("cut", 1, "error") if cell.stream else Expected("error")


def broken_state(cell: Cell) -> Expected:
    """What SQLite has not read yet it finds out about: an error; never a wrong answer."""
    return Expected("answer", None, "error") if cell.tongue in KEPT else Expected("answer")


SIGNALS: tuple[Disaster, ...] = (
    Disaster(name="SIGKILL", strike=_at_gateway(_kill), mend=_at_gateway(_restart), expect=gone),
    Disaster(
        name="SIGTERM", strike=_at_gateway(_terminate), mend=_at_gateway(_restart_after_end), expect=drained
    ),
    Disaster(
        name="SIGTERM, and Google says nothing more",
        strike=_at_gateway(_terminate),
        mend=_at_gateway(_restart_after_end),
        expect=hurried,
        google_waits=True,
        settings=(("SERVER_SHUTDOWN_S", "1"),),
    ),
)
CLOCK: tuple[Disaster, ...] = tuple(
    Disaster(
        name=name, strike=_at_gateway(_set_clock(to)), mend=_at_gateway(_set_clock(back)), expect=harmless
    )
    for name, to, back in (
        ("the clock jumps forward by a day", "+1d", "+1d"),
        ("the clock jumps back by a day", "-1d", "-1d"),
        ("the clock jumps ahead by an hour, and back", "+1h", "+0"),
        ("the clock falls back by ten years", "-10y", "-10y"),
    )
)
FILES: tuple[Disaster, ...] = (
    Disaster(
        name="the state file is overwritten",
        strike=_at_gateway(_overwrite),
        mend=_at_gateway(_start_anew),
        expect=broken_state,
        loses=True,
    ),
    Disaster(
        name="the state file is cut in half",
        strike=_at_gateway(_truncate),
        mend=_at_gateway(_start_anew),
        expect=broken_state,
        loses=True,
    ),
)
DESCRIPTORS: tuple[Disaster, ...] = (
    Disaster(name="no descriptor is left", strike=_starve_for_a_while, mend=_fed, expect=harmless),
)
PROCESS = (*SIGNALS, *CLOCK, *FILES, *DESCRIPTORS)
