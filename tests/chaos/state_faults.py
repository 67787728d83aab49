"""Faults of what the gateway keeps its state on: the disk, the SQLite file, Redis."""

from __future__ import annotations

import asyncio
import errno
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoman.store import RedisStore, SqliteStore, Store, StoreUnavailable
from tests.chaos.environment import Environment
from tests.chaos.matrix_rows import Act, Disaster, harmless, stateless
from tests.redis_server import RedisServer

_DISK_BYTES = 16 << 20
_AGE_S = 86_400
_HOLDER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
db.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


class SqliteState:
    """A state file on a small disk of its own."""

    def __init__(self, folder: Path) -> None:
        self._ballast = folder / "ballast"
        self._path = folder / "state.db"
        self._holder: subprocess.Popen[bytes] | None = None
        self.store = SqliteStore(self._path, max_age_s=_AGE_S, max_bytes=1 << 30, now=time.time)

    def fill(self) -> None:
        """To the last byte."""
        with self._ballast.open("wb", buffering=0) as ballast:
            for size in (1 << 16, 1 << 10, 1):
                try:
                    while ballast.write(b"\0" * size):
                        pass
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    def free(self) -> None:
        self._ballast.unlink()

    def lock(self) -> None:
        """Another process holds it, as a backup or a person with a shell would."""
        command = [sys.executable, "-c", _HOLDER, str(self._path)]
        self._holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == b"held\n"

    def unlock(self) -> None:
        if self._holder is not None:
            self._holder.communicate()
            self._holder = None


class RedisState:
    def __init__(self, server: RedisServer) -> None:
        self.server = server
        self.store = RedisStore(server.url, max_age_s=_AGE_S)

    def kill(self) -> None:
        self.server.stop(kill=True)

    def start(self) -> None:
        self.server.start()

    def restart(self) -> None:
        self.kill()
        self.start()

    def allow(self, memory: str) -> None:
        with self.server.client() as client:
            client.config_set("maxmemory", memory)


@contextmanager
def sqlite_state(folder: Path) -> Iterator[SqliteState]:
    with small_disk(folder / "disk") as disk:
        state = SqliteState(disk)
        try:
            yield state
        finally:
            state.unlock()


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "none", str(folder)]
    if subprocess.run(mount, check=False).returncode:
        pytest.skip("needs the right to mount a tmpfs: run as root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def redis_state(folder: Path) -> Iterator[RedisState]:
    place = folder / "redis"
    place.mkdir()
    server = RedisServer(place).start()
    try:
        yield RedisState(server)
    finally:
        server.resume()
        server.stop(kill=True)


def _in_state(act: Callable[..., None], *args: str) -> Act:
    async def strike(world: Environment) -> None:
        await asyncio.to_thread(act, world.state, *args)

    return strike


def _mended(act: Callable[..., None], *args: str) -> Act:
    """Until the store has noticed: one that was not there is not asked for a moment."""

    async def mend(world: Environment) -> None:
        await asyncio.to_thread(act, world.state, *args)
        deadline = time.monotonic() + 30
        while not await _takes(world.state.store):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)

    return mend


async def _takes(store: Store) -> bool:
    try:
        await store.set_values([("probe", "probe")])
    except StoreUnavailable:
        return False
    return True


def _pause(state: RedisState) -> None:
    state.server.pause()


def _resume(state: RedisState) -> None:
    state.server.resume()


async def _nothing(_world: Environment) -> None:
    """It is over by itself."""


SQLITE: tuple[Disaster, ...] = (
    Disaster(
        name="the disk is full",
        strike=_in_state(SqliteState.fill),
        mend=_mended(SqliteState.free),
        expect=stateless,
    ),
    Disaster(
        name="the state file is locked",
        strike=_in_state(SqliteState.lock),
        mend=_mended(SqliteState.unlock),
        expect=stateless,
    ),
)
REDIS: tuple[Disaster, ...] = (
    Disaster(
        name="Redis is killed",
        strike=_in_state(RedisState.kill),
        mend=_mended(RedisState.start),
        expect=stateless,
    ),
    Disaster(
        name="Redis hangs",
        strike=_in_state(_pause),
        mend=_mended(_resume),
        expect=stateless,
        unsure=True,
    ),
    Disaster(
        name="Redis is out of memory",
        strike=_in_state(RedisState.allow, "1"),
        mend=_mended(RedisState.allow, "0"),
        expect=stateless,
    ),
    Disaster(
        name="Redis is killed and started again",
        strike=_in_state(RedisState.restart),
        mend=_nothing,
        expect=harmless,
    ),
)
