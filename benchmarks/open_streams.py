"""Memory of many open streams, and descriptors that remain after they are closed."""

from __future__ import annotations

import asyncio
import os
from urllib.parse import urlsplit

import msgspec

from benchmarks.conversation import Conversation, Shape
from benchmarks.fake_answers import AnswerSpec
from benchmarks.http_client import build_post
from benchmarks.procfs import rss_kib
from dragoman.process.tuning import raise_descriptor_limit

_WARM_UP = 30
_AT_ONCE = 50
_ANSWER_S = 60.0
_FOREVER_MS = 3_600_000
_SETTLE_S = 1.0
_SPARE = 256


OpenStream = tuple[asyncio.StreamWriter, int]


class StreamMemory(msgspec.Struct, frozen=True, kw_only=True):
    """Memory of `streams` open streams; `leaked_descriptors` remained open after them."""

    streams: int
    request_bytes: int
    idle_kib: int
    open_kib: int
    closed_kib: int
    leaked_descriptors: int

    @property
    def per_stream_kib(self) -> float:
        return (self.open_kib - self.idle_kib) / self.streams


async def measure_streams(url: str, pid: int, shape: Shape, streams: int, seed: str = "") -> StreamMemory:
    """Measure streams that have started and send nothing more."""
    raise_descriptor_limit(streams + _SPARE)
    place = urlsplit(url)
    host, port = place.hostname or "", place.port or 0
    await _close([await _open(host, port, shape, f"{seed}warm{number}") for number in range(_WARM_UP)])
    await asyncio.sleep(_SETTLE_S)
    idle_kib, before = rss_kib([pid]), _descriptors(pid)
    room = asyncio.Semaphore(_AT_ONCE)

    async def open_one(number: int) -> OpenStream:
        async with room:
            return await _open(host, port, shape, f"{seed}s{number}")

    opened = await asyncio.gather(*map(open_one, range(streams)))
    open_kib = rss_kib([pid])
    await _close(opened)
    for _ in range(100):
        await asyncio.sleep(_SETTLE_S / 10)
        if _descriptors(pid) <= before:
            break
    return StreamMemory(
        streams=streams,
        request_bytes=opened[0][1],
        idle_kib=idle_kib,
        open_kib=open_kib,
        closed_kib=rss_kib([pid]),
        leaked_descriptors=max(0, _descriptors(pid) - before),
    )


async def _open(host: str, port: int, shape: Shape, seed: str) -> OpenStream:
    """Open a stream and wait for its first text."""
    body = Conversation(shape, seed, stream=True).body(AnswerSpec(id=seed, chunks=5, pace_ms=_FOREVER_MS))
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(build_post("anthropic", body, stream=True))
    async with asyncio.timeout(_ANSWER_S):
        seen = b""
        while b"content_block_delta" not in seen:
            piece = await reader.read(65536)
            seen += piece
            if not piece or not seen.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(f"no stream: {seen!r}")
    return writer, len(body)


async def _close(opened: list[OpenStream]) -> None:
    for writer, _ in opened:
        writer.close()
    await asyncio.gather(*(writer.wait_closed() for writer, _ in opened), return_exceptions=True)


def _descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))
