"""Floods at full speed: HTTP/1.1 pipelining, and every HTTP/2 frame that costs the sender less than the server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks import http2_attacks
from tests.attacks.attacker import Attack
from tests.attacks.gateway_target import ATTACKER_KEY, Target, attack_for, measured, survive
from tests.load_balancers import balancer

_PIPELINED = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n" * 200
_PIPELINED_KEY = (
    b"GET /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: " + ATTACKER_KEY.encode() + b"\r\n\r\n"
)


def pipelined() -> Iterator[bytes]:
    while True:
        yield _PIPELINED


def pipelined_large_answers() -> Iterator[bytes]:
    while True:
        yield _PIPELINED_KEY * 100


@pytest.mark.parametrize("pieces", [pipelined, pipelined_large_answers], ids=lambda pieces: pieces.__name__)
async def test_pipelined_requests_whose_answers_nobody_reads(
    target: Target, pieces: http2_attacks.Pieces
) -> None:
    attack = Attack(pieces=pieces, connections=60, reads=False, reconnects=False)
    await survive(target, f"HTTP/1.1 {pieces.__name__}", attack, seconds=3)


HTTP2 = [
    http2_attacks.rapid_reset,
    http2_attacks.rapid_reset_of_calls,
    http2_attacks.rapid_reset_within_the_limit,
    http2_attacks.made_you_reset_by_window,
    http2_attacks.made_you_reset_by_zero_window,
    http2_attacks.made_you_reset_by_data,
    http2_attacks.made_you_reset_by_length,
    http2_attacks.made_you_reset_by_priority,
    http2_attacks.data_on_closed_streams,
    http2_attacks.resets_on_closed_streams,
    http2_attacks.windows_on_closed_streams,
    http2_attacks.continuations,
    http2_attacks.empty_continuations,
    http2_attacks.settings_flood,
    http2_attacks.ping_flood,
    http2_attacks.empty_data,
    http2_attacks.priority_flood,
    http2_attacks.tiny_windows,
    http2_attacks.closed_windows,
    http2_attacks.window_overflow,
    http2_attacks.changing_windows,
    http2_attacks.hpack_bomb,
    http2_attacks.table_size_updates,
    http2_attacks.too_many_streams,
]


@pytest.mark.parametrize("pieces", HTTP2, ids=lambda pieces: pieces.__name__)
async def test_http2_flood(target: Target, pieces: http2_attacks.Pieces) -> None:
    await survive(target, f"HTTP/2 {pieces.__name__}", Attack(pieces=pieces), seconds=1)


UNREAD = [
    http2_attacks.unread_answers,
    http2_attacks.ping_flood,
    http2_attacks.settings_flood,
    http2_attacks.made_you_reset_by_window,
]


@pytest.mark.parametrize("pieces", UNREAD, ids=lambda pieces: pieces.__name__)
async def test_http2_answers_that_nobody_reads(target: Target, pieces: http2_attacks.Pieces) -> None:
    """The server must stop reading when its own answers pile up."""
    attack = Attack(pieces=pieces, reads=False, reconnects=False)
    await survive(target, f"HTTP/2 {pieces.__name__}, unread", attack, seconds=1.5)


@pytest.mark.parametrize(
    "pieces",
    [http2_attacks.unfinished_streams, http2_attacks.unfinished_calls],
    ids=lambda pieces: pieces.__name__,
)
async def test_http2_streams_that_are_never_finished(target: Target, pieces: http2_attacks.Pieces) -> None:
    attack = Attack(pieces=pieces, connections=100, reconnects=False)
    await survive(target, f"HTTP/2 {pieces.__name__}", attack, seconds=3)


@pytest.mark.parametrize("name", ["nginx", "haproxy"])
async def test_a_proxy_keeps_resets_away_from_the_gateway(target: Target, name: str, tmp_path: Path) -> None:
    """Without one, a client that reconnects and resets makes requests faster than Python can refuse them.

    The memory of the gateway then grows by about 100 MB a second, for as long as that goes on.
    """
    attack = Attack(pieces=http2_attacks.rapid_reset_within_the_limit)
    with balancer(name, [target.url, target.url], tmp_path) as url:
        async with measured(target, f"{name} rapid_reset_within_the_limit", url=url) as row:
            row.outcome = await attack_for(attack, int(url.rpartition(":")[2]), 3)
    assert row.peak_mib < row.before_mib + 50
