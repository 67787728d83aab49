"""Send hostile bytes over many connections at once, from a process of its own, for a bounded time."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import msgspec

_CONNECT_S = 10.0
_MAX_CONNECTS = 5_000  # all connections of one attack together: a server that refuses each at once ends it
_WRITE_S = 1.0  # a server that reads nothing for so long is still under attack, but the clock is looked at


class Attack(msgspec.Struct, frozen=True, kw_only=True):
    """`pieces` yields what one connection sends; a connection that ends, or was closed, is opened again.

    `pause_s` is the time between two pieces. `reads` tells whether the answers are read. A file at `stop_file` ends
    the attack early.
    """

    pieces: Callable[[], Iterator[bytes]]
    connections: int = 20
    reads: bool = True
    pause_s: float = 0.0
    reconnects: bool = True
    stop_file: str = ""

    def is_over(self, deadline: float) -> bool:
        return time.monotonic() >= deadline or (self.stop_file != "" and os.path.exists(self.stop_file))


class Outcome(msgspec.Struct):
    """What the attackers did and saw."""

    connections: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0
    closed_by_server: int = 0


def run(attack: Attack, port: int, seconds: float) -> Outcome:
    """Run in this process; a test starts it in another one."""
    return asyncio.run(_run(attack, port, time.monotonic() + seconds))


async def _run(attack: Attack, port: int, deadline: float) -> Outcome:
    outcome = Outcome()
    async with asyncio.TaskGroup() as group:
        for _ in range(attack.connections):
            group.create_task(_keep_attacking(attack, port, deadline, outcome))
    return outcome


async def _keep_attacking(attack: Attack, port: int, deadline: float, outcome: Outcome) -> None:
    while not attack.is_over(deadline) and outcome.connections < _MAX_CONNECTS:
        outcome.connections += 1
        with suppress(OSError, TimeoutError):
            await _one_connection(attack, port, deadline, outcome)
        if not attack.reconnects:
            return


class _Protocol(asyncio.Protocol):
    def __init__(self, attack: Attack, outcome: Outcome) -> None:
        self._attack = attack
        self._outcome = outcome
        self.writable = asyncio.Event()
        self.writable.set()
        self.closed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        if not self._attack.reads:
            transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        self._outcome.received_bytes += len(data)

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def connection_lost(self, error: Exception | None) -> None:
        self.closed.set()
        self.writable.set()


async def _one_connection(attack: Attack, port: int, deadline: float, outcome: Outcome) -> None:
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(_CONNECT_S):
        transport, protocol = await loop.create_connection(
            lambda: _Protocol(attack, outcome), "127.0.0.1", port
        )
    try:
        for piece in attack.pieces():
            if protocol.closed.is_set() or attack.is_over(deadline):
                break
            transport.write(piece)
            outcome.sent_bytes += len(piece)
            await asyncio.sleep(attack.pause_s)
            while not protocol.writable.is_set() and not attack.is_over(deadline):
                with suppress(TimeoutError):
                    await asyncio.wait_for(protocol.writable.wait(), _WRITE_S)
        while not protocol.closed.is_set() and not attack.is_over(deadline) and not attack.reconnects:
            with suppress(TimeoutError):
                await asyncio.wait_for(protocol.closed.wait(), _WRITE_S)
        outcome.closed_by_server += protocol.closed.is_set()
    finally:
        transport.abort()
