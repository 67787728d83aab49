"""A gateway, its Google and its clients in one process; and a count of everything that could be left behind."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest

from dragoman.store import RedisStore, Store
from dragoman.upstream import client, retry
from tests.chaos.faulty_proxy import Proxy, Weather, proxied
from tests.chaos.matrix_rows import Fault
from tests.chaos.raw_client import Ask, Client
from tests.chaos.scripted_google import Play, Stage, nothing
from tests.faults.harness import KEY, Running, gateway

#: A cell that takes this long hangs.
HANG_S = 30.0
LIMITS: dict[str, Any] = {
    "connect_timeout_s": 5.0,
    "idle_timeout_s": 20.0,
    "total_timeout_s": 40.0,
    "max_attempts": 3,
    "max_wait_s": 10.0,
}
#: Where a time limit is what ends the cell.
HASTY: dict[str, Any] = {"idle_timeout_s": 1.5, "total_timeout_s": 6.0}
_SERVER: dict[str, Any] = {"ping_s": 0.3}
_HELLO = {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}
_SETTLE_S = 20.0
_POLL_S = 0.01


class EnvironmentProtocol(Protocol):
    """Where a conversation can be held: a gateway somewhere, and the Google behind it."""

    @property
    def google(self) -> Stage: ...

    def client(self) -> Client: ...

    async def settled(self) -> None: ...


class Environment:
    """All in this process; `client_way` and `google_way` are the network in front of the gateway and behind it."""

    def __init__(
        self, google: Stage, running: Running, port: int, client_way: Proxy, google_way: Proxy
    ) -> None:
        self.state: Any = None  # what its store lies on
        self.google = google
        self.running = running
        self.port = port
        self.client_way = client_way
        self.google_way = google_way

    def client(self) -> Client:
        return Client(self.port, {"authorization": f"Bearer {KEY}"})

    async def settled(self) -> None:
        """Nobody is being served any more, here or at Google's."""
        await until(
            lambda: not self.running.app.running and self.google.answers == 0,
            lambda: f"still running: {self.running.app.running}, {self.google.answers} at Google's",
        )
        assert self.google.mistakes == []

    @asynccontextmanager
    async def nothing_left_behind(self) -> AsyncIterator[None]:
        """No task, no socket and no request at Google's that was not there before, once idle connections are closed."""
        await self._warm_up()
        await self._hang_up()
        await asyncio.sleep(_POLL_S)
        before = ResourceCount.take()
        yield
        for way in (self.client_way, self.google_way):
            way.close()
        await self.settled()
        deadline = asyncio.get_running_loop().time() + _SETTLE_S
        while not _fits(before):
            assert asyncio.get_running_loop().time() < deadline, ResourceCount.take().beyond(before)
            await self._hang_up()  # again: the ledger is written when nobody waits
            await asyncio.sleep(_POLL_S)

    async def _hang_up(self) -> None:
        """What is kept for the next request is opened again by it."""
        gateway = self.running.app.gateway
        await gateway.client.close()
        if isinstance(gateway.store, RedisStore):
            await gateway.store.close()

    async def _warm_up(self) -> None:
        """What is opened once and stays is open."""
        self.google.put_on("gemini-warm", Play("before headers", nothing))
        heard = await self.client().ask(Ask("/v1beta/models/gemini-warm:generateContent", _HELLO))
        assert heard.status == 200, heard.body
        await self.running.app.gateway.store.ledger.entries(limit=1)


async def until(check: Callable[[], bool], complain: Callable[[], str]) -> None:
    deadline = asyncio.get_running_loop().time() + _SETTLE_S
    while not check():
        assert asyncio.get_running_loop().time() < deadline, complain()
        await asyncio.sleep(_POLL_S)


class ResourceCount(msgspec.Struct, frozen=True):
    """What this process holds: tasks by what they do, and open files by what they are."""

    tasks: tuple[str, ...]
    files: tuple[str, ...]

    def beyond(self, before: ResourceCount) -> list[str]:
        """What is there more often than it was."""
        now = Counter(self.tasks) + Counter(self.files)
        return sorted((now - Counter(before.tasks) - Counter(before.files)).elements())

    @classmethod
    def take(cls) -> ResourceCount:
        mine = asyncio.current_task()
        tasks = (repr(task.get_coro()) for task in asyncio.all_tasks() if task is not mine)
        files = []
        unix = {line.split()[6] for line in Path("/proc/net/unix").read_text().splitlines()[1:]}
        for number in os.listdir("/proc/self/fd"):
            try:
                files.append(_kind_of(os.readlink(f"/proc/self/fd/{number}"), unix))
            except OSError:  # the one that lists them
                continue
        return cls(tuple(sorted(tasks)), tuple(sorted(files)))


def _kind_of(link: str, unix: set[str]) -> str:
    """Of a socket also which kind: it tells whose it is. `unix` are the numbers of those that have no network."""
    kind, _, number = link.rstrip("]").partition(":[")
    if kind != "socket":
        return kind
    return "socket (unix)" if number in unix else "socket (tcp)"


def _fits(before: ResourceCount) -> bool:
    after = ResourceCount.take()
    return len(after.tasks) <= len(before.tasks) and len(after.files) <= len(before.files)


def limits(fault: Fault) -> dict[str, Any]:
    return HASTY if fault.hasty else {}


@contextmanager
def impatient() -> Iterator[None]:
    """The waits that no setting changes are a twentieth of what they are."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in (
            (retry, "_FIRST_BACKOFF_S"),
            (retry, "_MIN_RATE_LIMIT_WAIT_S"),
            (client, "_TRAILING_TIMEOUT_S"),
        ):
            patch.setattr(module, name, getattr(module, name) / 20)
        yield


@asynccontextmanager
async def open_world(
    *,
    store: Store | None = None,
    upstream: dict[str, Any] | None = None,
    weather: Weather = Weather(),  # noqa: B008 (frozen)
    **top: Any,
) -> AsyncIterator[Environment]:
    google = Stage()
    server = await asyncio.start_server(google.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with proxied(port, weather) as (google_port, google_way):
        there = {**LIMITS, "base_url": f"http://127.0.0.1:{google_port}", **(upstream or {})}
        with impatient():
            async with (
                gateway(google, server=_SERVER, upstream=there, store=store, **top) as running,
                proxied(int(running.url.rpartition(":")[2]), weather) as (client_port, client_way),
            ):
                world = Environment(google, running, client_port, client_way, google_way)
                async with world.nothing_left_behind():
                    yield world
    server.close()
