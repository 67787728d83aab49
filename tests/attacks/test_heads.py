"""Heads, targets, chunk extensions and trailers of any size, cut into pieces of any size."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterator

import pytest

from tests.attacks.attacker import Attack
from tests.attacks.gateway_target import ATTACKER_KEY, Target, survive
from tests.attacks.http2_frames import (
    CONTINUATION,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    frame,
    header_block,
    opening,
)
from tests.attacks.raw_connection import exchange, statuses

_LINE = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n"
_CHUNKED = (
    b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nx-api-key: "
    + ATTACKER_KEY.encode()
    + b"\r\ntransfer-encoding: chunked\r\n\r\n"
)

#: Name -> the request, and the statuses that may be answered.
HEADS: dict[str, tuple[bytes, set[int]]] = {
    "10000 headers": (_LINE + b"".join(b"x-%d: y\r\n" % number for number in range(10_000)) + b"\r\n", {431}),
    "10000 headers of one name": (_LINE + b"x: y\r\n" * 10_000 + b"\r\n", {431}),
    "a header of 10 MB": (_LINE + b"x: " + b"y" * 10_000_000 + b"\r\n\r\n", {431}),
    "a header name of 1 MB": (_LINE + b"y" * 1_000_000 + b": x\r\n\r\n", {400, 431}),
    "64 KB of cookies": (_LINE + b"cookie: " + b"a=b; " * 13_108 + b"\r\n\r\n", {431}),
    "32 KB of cookies": (_LINE + b"cookie: " + b"a=b; " * 6_554 + b"\r\n\r\n", {200}),
    "a target of 1 MB": (
        b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
        {400, 414, 431},
    ),
    "a query of 20000 fields": (
        b"GET /healthz?" + b"a&" * 20_000 + b" HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
        {400},
    ),
    "a chunk extension of 10 MB": (_CHUNKED + b"1;" + b"a" * 10_000_000 + b"\r\n{\r\n0\r\n\r\n", {400}),
    "10000 chunk extensions": (_CHUNKED + b"1;a=b\r\n{\r\n" * 10_000 + b"0\r\n\r\n", {400}),
    "a trailer of 10 MB": (_CHUNKED + b"1\r\n{\r\n0\r\nx: " + b"y" * 10_000_000 + b"\r\n\r\n", {400}),
    "100000 trailers": (_CHUNKED + b"1\r\n{\r\n0\r\n" + b"x: y\r\n" * 100_000 + b"\r\n", {400}),
    "50000 chunks of a byte": (_CHUNKED + b"1\r\n \r\n" * 50_000 + b"0\r\n\r\n", {400}),
    "empty lines without end": (b"\r\n" * 1_000_000, {400, 431}),
}
SLICES = (7, 1_000, 65_536)  # bytes
_MAX_SLICES = 3_000


@pytest.mark.parametrize("name", HEADS)
async def test_a_head_beyond_the_limits_is_refused(target: Target, name: str) -> None:
    """The connection may also be closed without an answer: the client has sent megabytes that nobody read."""
    request, allowed = HEADS[name]
    exchanges = (exchange(target.port, slices(request, size)) for size in SLICES)
    for size, answer in zip(SLICES, await asyncio.gather(*exchanges), strict=True):
        assert set(statuses(answer)) <= allowed, size
        assert len(statuses(answer)) <= 1, size


def slices(request: bytes, size: int) -> Iterator[bytes]:
    """Not more than `_MAX_SLICES` of them; the rest comes in one piece."""
    cut = min(len(request), size * _MAX_SLICES)
    yield from (request[start : min(start + size, cut)] for start in range(0, cut, size))
    yield request[cut:]


def http1_heads(name: str) -> Iterator[bytes]:
    while True:
        yield from slices(HEADS[name][0], 65_536)


def http2_heads() -> Iterator[bytes]:
    """A head of 10 MB in one block, which is valid except for its size."""
    yield opening() + frame(HEADERS, END_STREAM, 1, header_block())
    field = header_block(x_long="y" * 16_000)[4:]
    for _ in range(640):
        yield frame(CONTINUATION, 0, 1, field)
    yield frame(CONTINUATION, END_HEADERS, 1)


@pytest.mark.parametrize("name", HEADS)
async def test_a_flood_of_heads(target: Target, name: str) -> None:
    attack = Attack(pieces=functools.partial(http1_heads, name))
    await survive(target, f"heads {name}", attack, seconds=0.5)


async def test_a_flood_of_http2_heads(target: Target) -> None:
    await survive(target, "heads HTTP/2, 10 MB", Attack(pieces=http2_heads), seconds=1)
