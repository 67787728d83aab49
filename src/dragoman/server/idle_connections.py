"""Close connections that occupy a slot and have no request running.

Granian has no time-out for a connection that sends nothing (it waits for the bytes that tell HTTP/1.1 from HTTP/2) and
none for an idle HTTP/2 connection, and `server.max_connections` of either would shut everybody else out. The kernel
knows how long a connection has been silent (TCP_INFO, see tcp(7)), so nothing of HTTP is read here. Linux only.
"""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import struct
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress

import msgspec

from dragoman.config import ServerConfig

_INTERVAL_S, _FULL_INTERVAL_S = 1.0, 0.1  # between two sweeps; the second one while all slots are taken
_MAX_LOAD, _FULL_MAX_LOAD = 0.01, 0.1  # sweep less often if sweeps take more than this share of the CPU
_FREE_SHARE = 16  # when all slots are taken, free one in so many
_BETWEEN_REQUESTS_MS = 1000  # a client that was active later than this may be about to send its next request
_TCP_INFO_BYTES = 104
_LAST_DATA_SENT, _LAST_DATA_RECEIVED = 44, 52  # offsets in struct tcp_info, in milliseconds


class _Connection(msgspec.Struct, frozen=True):
    fd: int
    peer_port: int
    idle_ms: int


class IdleConnectionSweeper:
    """Sweep the connections accepted on `port` of this process.

    `busy_ports` returns the peer ports of connections that have a request running. Only ports are compared: a
    coincidence keeps a connection open, and address notations do not matter.
    """

    def __init__(self, port: int, settings: ServerConfig, busy_ports: Callable[[], Collection[int]]) -> None:
        self._port = port
        self._settings = settings
        self._busy_ports = busy_ports
        self._unused_since: dict[int, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        if hasattr(socket, "TCP_INFO") and os.path.isdir("/proc/self/fd"):
            self._schedule(_INTERVAL_S)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def shut_down(self, peer_port: int) -> None:
        """Close the connection of an abusive client, whatever it is doing."""
        for one in _accepted_connections(self._port):
            if one.peer_port == peer_port:
                _shut_down(one, self._port)

    def _schedule(self, delay_s: float) -> None:
        delay_s = min(delay_s, self._settings.keep_alive_s / 2)
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._run)

    def _run(self) -> None:
        began = time.thread_time()
        full = False
        try:
            full = self.sweep(asyncio.get_running_loop().time())
        finally:
            took_s = time.thread_time() - began
            interval_s, load = (_FULL_INTERVAL_S, _FULL_MAX_LOAD) if full else (_INTERVAL_S, _MAX_LOAD)
            self._schedule(max(interval_s, took_s / load))

    def sweep(self, now: float) -> bool:
        """Close what has been idle for too long. Return whether all slots were taken."""
        connections = list(_accepted_connections(self._port))
        busy = self._busy_ports()
        unused = [one for one in connections if one.peer_port not in busy]
        self._unused_since = {one.peer_port: self._unused_since.get(one.peer_port, now) for one in unused}
        doomed = [one for one in unused if one.idle_ms >= self._settings.keep_alive_s * 1000]
        full = len(connections) >= self._settings.max_connections
        if full:
            doomed += self._choose_for_eviction(unused)
        for one in doomed:
            _shut_down(one, self._port)
        return full

    def _choose_for_eviction(self, unused: list[_Connection]) -> list[_Connection]:
        """Choose those that have had no request for longest; clients between two requests come last."""

        def order(one: _Connection) -> tuple[bool, float]:
            return one.idle_ms < _BETWEEN_REQUESTS_MS, self._unused_since[one.peer_port]

        return sorted(unused, key=order)[: self._settings.max_connections // _FREE_SHARE + 1]


def _accepted_connections(port: int) -> Iterator[_Connection]:
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            with socket.fromfd(int(name), socket.AF_INET6, socket.SOCK_STREAM) as duplicate:
                if _local_port(duplicate) == port:
                    yield _Connection(int(name), _peer_port(duplicate), _idle_ms(duplicate))


def _shut_down(connection: _Connection, port: int) -> None:
    """The descriptor may belong to somebody else by now, so look again: what is checked is a duplicate."""
    with (
        suppress(OSError),
        socket.fromfd(connection.fd, socket.AF_INET6, socket.SOCK_STREAM) as duplicate,
    ):
        if (_local_port(duplicate), _peer_port(duplicate)) == (port, connection.peer_port):
            duplicate.shutdown(socket.SHUT_RDWR)


def _local_port(connection: socket.socket) -> int:
    name = connection.getsockname()
    return int(name[1]) if isinstance(name, tuple) else 0


def _peer_port(connection: socket.socket) -> int:
    """Raise OSError for a listening socket."""
    return int(connection.getpeername()[1])


def _idle_ms(connection: socket.socket) -> int:
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
    offsets = (_LAST_DATA_SENT, _LAST_DATA_RECEIVED)
    return min(int(struct.unpack_from("=I", info, offset)[0]) for offset in offsets)
