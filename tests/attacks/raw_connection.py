"""One connection, any bytes, and what came back."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from contextlib import suppress

_PATIENCE_S = 30.0


async def exchange(port: int, pieces: Iterable[bytes], *, quiet_s: float = 1.0) -> bytes:
    """Send the pieces, and read until the server closes or sends nothing for `quiet_s`."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    received = bytearray()

    async def read() -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                received.extend(data)

    reading = asyncio.ensure_future(read())
    try:
        with suppress(ConnectionError):
            for piece in pieces:
                writer.write(piece)
                await asyncio.sleep(0)  # so that it leaves as a piece of its own
                async with asyncio.timeout(_PATIENCE_S):
                    await writer.drain()
        await _until_quiet(reading, received, quiet_s)
    finally:
        reading.cancel()
        await asyncio.wait({reading})
        writer.transport.abort()
    return bytes(received)


async def _until_quiet(reading: asyncio.Future[None], received: bytearray, quiet_s: float) -> None:
    async with asyncio.timeout(_PATIENCE_S):
        while True:
            before = len(received)
            done, _ = await asyncio.wait({reading}, timeout=quiet_s)
            if done or len(received) == before:
                return


def statuses(answer: bytes) -> list[int]:
    """The statuses of all HTTP/1.1 answers in it, without 100 Continue."""
    found = [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d{3})", answer)]
    return [status for status in found if status != 100]
