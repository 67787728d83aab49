"""The floor where there is no nginx: every byte passed on, nothing looked at.

`python -m benchmarks.tcp_proxy HOST PORT` prints its address.
"""

from __future__ import annotations

import asyncio
import sys
from typing import cast

import uvloop


class ProxyConnection(asyncio.Protocol):
    """One side of a connection pair; bytes received here are sent on the other side."""

    def __init__(self, other: ProxyConnection | None = None) -> None:
        self._other = other
        self._waiting: list[bytes] = []
        self.transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.WriteTransport", transport)  # uvloop\'s are no subclasses

    def join(self, other: ProxyConnection) -> None:
        self._other = other
        for data in self._waiting:
            self.data_received(data)

    def data_received(self, data: bytes) -> None:
        if self._other is None or self._other.transport is None:
            self._waiting.append(data)
        else:
            self._other.transport.write(data)

    def connection_lost(self, _exc: Exception | None) -> None:
        if self._other is not None and self._other.transport is not None:
            self._other.transport.close()


class ProxyServer(ProxyConnection):
    def __init__(self, host: str, port: int) -> None:
        super().__init__()
        self._address = (host, port)
        self._dialing: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._dialing = asyncio.get_running_loop().create_task(self._dial())

    async def _dial(self) -> None:
        _, back = await asyncio.get_running_loop().create_connection(
            lambda: ProxyConnection(self), *self._address
        )
        self.join(back)


async def main(host: str, port: int) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: ProxyServer(host, port), "127.0.0.1", 0)
    own_host, own_port = server.sockets[0].getsockname()
    print(f"ready http://{own_host}:{own_port}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2])))
