"""Several Google keys: one that is refused rests everywhere, one that has rested is tried by one request."""

from __future__ import annotations

import time

import pytest

from dragoman.errors import UpstreamError
from dragoman.gateway.relay.key_pool import KeyPool
from dragoman.store import MemoryStore, StoreUnavailable
from dragoman.upstream.keys import ApiKey

SECRETS = ("AIza-one", "AIza-two", "AIza-three")
BUSY = UpstreamError("x", kind="rate_limit", retry_after_s=30)


class Clock:
    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock) -> MemoryStore:
    return MemoryStore(clock)


async def test_one_key_is_always_the_one(store: MemoryStore) -> None:
    ring = KeyPool(["AIza"], store)
    key = await ring.pick("s", "m")
    await ring.report(key, "m", BUSY)
    assert (await ring.pick("s", "m")).secret == "AIza"
    assert not ring.has_other("m", key)
    assert await KeyPool([], store).pick("s", "m") == ApiKey("", "")


async def test_a_conversation_keeps_its_key_until_it_is_refused(store: MemoryStore, clock: Clock) -> None:
    ring = KeyPool(SECRETS, store, clock)
    first = await ring.pick("s", "m")
    assert await ring.pick("s", "m") == first
    await ring.report(first, "m", BUSY)
    second = await ring.pick("s", "m")
    assert second != first
    assert await ring.pick("s", "other model") == first
    clock.now += 31
    assert await ring.pick("s", "m") == first


async def test_one_request_probes_a_rested_key_and_success_opens_it_to_all(
    store: MemoryStore, clock: Clock
) -> None:
    ring = KeyPool(SECRETS, store, clock)
    first = await ring.pick("s", "m")
    await ring.report(first, "m", BUSY)
    clock.now += 31
    assert await ring.pick("s", "m") == first
    assert await ring.pick("s", "m") != first
    await ring.report(first, "m", None)
    assert await ring.pick("s", "m") == first


async def test_l4_when_all_rest_the_soonest_is_told(store: MemoryStore, clock: Clock) -> None:
    ring = KeyPool(SECRETS, store, clock)
    for _ in SECRETS:
        key = await ring.pick("s", "m")
        await ring.report(key, "m", BUSY)
    assert not ring.has_other("m", key)
    with pytest.raises(UpstreamError, match="all 3 keys rest") as told:
        await ring.pick("s", "m")
    assert (told.value.kind, told.value.retry_after_s) == ("rate_limit", 30)


async def test_another_replica_hears_of_it(store: MemoryStore, clock: Clock) -> None:
    left, right = KeyPool(SECRETS, store, clock), KeyPool(SECRETS, store, clock)
    key = await left.pick("s", "m")
    await left.report(key, "m", BUSY)
    assert await right.pick("s", "m") != key
    assert right.has_other("m", await right.pick("s", "m"))
    clock.now += 40
    assert await right.pick("s", "m") == key


async def test_a_wrong_key_rests_for_every_model(store: MemoryStore, clock: Clock) -> None:
    ring = KeyPool(SECRETS, store, clock)
    key = await ring.pick("s", "m")
    await ring.report(key, "m", UpstreamError("x", kind="authentication"))
    assert await ring.pick("s", "other model") != key


async def test_what_is_googles_fault_costs_no_key_anything(store: MemoryStore, clock: Clock) -> None:
    ring = KeyPool(SECRETS, store, clock)
    key = await ring.pick("s", "m")
    await ring.report(key, "m", UpstreamError("x", kind="overloaded"))
    assert await ring.pick("s", "m") == key


async def test_without_the_store_each_replica_finds_out_itself(
    store: MemoryStore, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(_charges: object) -> str:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(store.meters, "charge", gone)
    monkeypatch.setattr(store.meters, "read", gone)
    ring = KeyPool(SECRETS, store, clock)
    key = await ring.pick("s", "m")
    await ring.report(key, "m", BUSY)
    assert await ring.pick("s", "m") != key


async def test_people_see_names_and_never_secrets(store: MemoryStore, clock: Clock) -> None:
    ring = KeyPool(SECRETS, store, clock)
    key = await ring.pick("s", "m")
    await ring.report(key, "m", BUSY)
    shown = {state.name: state.cooldowns_s for state in ring.states()}
    assert shown[key.name] == {"m": 30}
    assert "AIza" not in repr(ring.states())


async def test_l4_what_another_replica_said_is_asked_again_and_not_tried_out(
    store: MemoryStore, clock: Clock
) -> None:
    """A key that is out for half an hour costs each replica no request of its own."""
    left, right = KeyPool(SECRETS, store, clock), KeyPool(SECRETS, store, clock)
    key = await left.pick("s", "m")
    await left.report(key, "m", UpstreamError("x", kind="quota"))
    for _ in range(20):
        clock.now += 60
        assert await right.pick("s", "m") != key
    clock.now += 700
    assert await right.pick("s", "m") == key  # one finds out
    assert await right.pick("s", "m") != key
    await right.report(key, "m", None)
    assert await right.pick("s", "m") == key


async def test_names_of_models_that_clients_make_up_do_not_add_up(
    store: MemoryStore, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.gateway.relay.key_pool._MAX_COOLDOWNS", 10)
    ring = KeyPool(SECRETS, store, clock)
    for number in range(100):
        await ring.report(ApiKey("AIza-one", "one"), f"made-up-{number}", BUSY)
        clock.now += 31
    assert len(ring._cooldowns) <= 10


async def test_nor_do_those_that_all_rest_at_once_and_the_longest_rests_are_kept(
    store: MemoryStore, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.gateway.relay.key_pool._MAX_COOLDOWNS", 10)
    ring = KeyPool(SECRETS, store, clock)
    for number in range(100):
        await ring.report(ApiKey("AIza-one", "one"), f"made-up-{number}", BUSY)
        clock.now += 0.1
    assert len(ring._cooldowns) <= 10
    assert ("one", "made-up-99") in ring._cooldowns


async def test_nor_do_those_that_other_replicas_tell_of(
    store: MemoryStore, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.gateway.relay.key_pool._MAX_COOLDOWNS", 10)
    here, there = KeyPool(SECRETS, store, clock), KeyPool(SECRETS, store, clock)
    for number in range(100):
        await there.report(await there.pick("s", f"made-up-{number}"), f"made-up-{number}", BUSY)
        await here.pick("s", f"made-up-{number}")
        clock.now += 2
    assert 0 < len(here._cooldowns) <= 10
    assert 0 < len(here._reported) <= 10


async def test_what_rests_anywhere_is_heard_of_while_it_rests(store: MemoryStore, clock: Clock) -> None:
    here, there = KeyPool(SECRETS, store, clock), KeyPool(SECRETS, store, clock)
    key = await there.pick("s", "m")
    await there.report(key, "m", BUSY)
    assert await here.reported_cooldowns(["m", "other"]) == {(key.name, "m")}
    clock.now += 60
    assert await here.reported_cooldowns(["m"]) == set()
