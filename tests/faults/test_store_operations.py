"""What a turn costs in the store, counted by the store itself: the figures of docs/scale.md cannot drift far."""

from __future__ import annotations

import pytest

from benchmarks.store_cost import Kind, measure_redis, measure_sqlite

CONVERSATIONS, TURNS = 4, 6


@pytest.mark.parametrize(
    ("kind", "round_trips", "kept_bytes"), [("stateless", 2, 2_000), ("stateful", 9, 12_000)]
)
async def test_redis_is_asked_little_for_each_request(kind: Kind, round_trips: int, kept_bytes: int) -> None:
    cost = await measure_redis(kind, conversations=CONVERSATIONS, turns=TURNS)
    print(cost)
    assert cost.requests == 2 * CONVERSATIONS * TURNS
    assert 0 < cost.per_request <= round_trips
    assert 0 < cost.bytes_per_turn < kept_bytes


@pytest.mark.parametrize(("kind", "kept_bytes"), [("stateless", 4_000), ("stateful", 30_000)])
async def test_the_state_file_grows_little_with_each_turn(kind: Kind, kept_bytes: int) -> None:
    kept = await measure_sqlite(kind, conversations=CONVERSATIONS, turns=TURNS)
    print(kind, kept)
    assert 0 < kept < kept_bytes
