"""How much is worked on at once, and that nobody takes it all."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DragomanError
from dragoman.gateway.limits.concurrency import (
    ByteBudget,
    ConcurrencyLimiter,
    RequestLease,
    unauthenticated_limiter,
)


def take(places: ConcurrencyLimiter, caller: str) -> RequestLease:
    stay = RequestLease(ByteBudget(0))
    stay.acquire_slot(places, caller)
    return stay


def test_one_too_many_is_told_to_come_again() -> None:
    places = ConcurrencyLimiter(2)
    with take(places, "a"), take(places, "b"):
        with (
            pytest.raises(DragomanError, match="2 requests are being answered") as refused,
            take(places, "c"),
        ):
            pass
        assert (refused.value.kind, refused.value.retry_after_s) == ("overloaded", 1.0)
    with take(places, "c"):
        assert len(places) == 1
    assert len(places) == 0


def test_who_asks_for_everything_leaves_an_eighth_to_the_others() -> None:
    places = ConcurrencyLimiter(80)
    with ExitStack() as held:
        for _ in range(70):
            held.enter_context(take(places, "greedy"))
        with pytest.raises(DragomanError):
            held.enter_context(take(places, "greedy"))
        for number in range(10):
            held.enter_context(take(places, f"modest {number}"))
        with pytest.raises(DragomanError):
            held.enter_context(take(places, "late"))


def test_another_caller_runs_several_requests_while_one_takes_everything() -> None:
    places = ConcurrencyLimiter(80)
    with ExitStack() as stack:
        for _ in range(70):
            stack.enter_context(take(places, "flood"))
        with pytest.raises(DragomanError):
            take(places, "flood")
        for _ in range(3):  # a third of the ten reserved slots: two callers, and one who may still come
            stack.enter_context(take(places, "other"))
        with pytest.raises(DragomanError):
            take(places, "other")
        stack.enter_context(take(places, "newcomer"))


def test_a_single_place_is_for_whoever_comes_first() -> None:
    places = ConcurrencyLimiter(1)
    with take(places, "a"), pytest.raises(DragomanError), take(places, "b"):
        pass


@given(st.integers(1, 40), st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=200))
def test_places_are_never_passed_and_always_given_back(most: int, moves: list[tuple[int, bool]]) -> None:
    places = ConcurrencyLimiter(most)
    held: dict[int, list[ExitStack]] = {number: [] for number in range(6)}
    for caller, takes in moves:
        if not takes and held[caller]:
            held[caller].pop().close()
        elif takes:
            stack = ExitStack()
            taken = len(places)
            try:
                stack.enter_context(take(places, str(caller)))
            except DragomanError:
                assert taken >= (most - most // 8 if held[caller] else most)
            else:
                held[caller].append(stack)
        assert len(places) == sum(map(len, held.values())) <= most
    for stacks in held.values():
        for stack in stacks:
            stack.close()
    assert len(places) == 0
    assert not places._by_caller


def test_a_stay_gives_back_its_place_and_its_room() -> None:
    places, room = ConcurrencyLimiter(2), ByteBudget(100)
    with RequestLease(room) as stay:
        stay.acquire_slot(places, "a")
        stay.take(60)
        assert (len(places), room.left_bytes) == (1, 40)
    assert (len(places), room.left_bytes) == (0, 100)


def test_who_was_refused_a_place_has_none_to_leave() -> None:
    places = ConcurrencyLimiter(1)
    with take(places, "a"):
        with RequestLease(ByteBudget(0)) as stay, pytest.raises(DragomanError):
            stay.acquire_slot(places, "b")
        assert len(places) == 1


def test_a_room_has_an_end_and_gives_everything_back() -> None:
    room = ByteBudget(100)
    with room.lease() as first:
        first.take(60)
        with room.lease() as second:
            second.take(40)
            with pytest.raises(DragomanError, match="max_inflight_bytes"):
                first.take(1)
        assert room.left_bytes == 40
        first.take(40)
    assert room.left_bytes == 100


def test_who_is_proven_takes_a_place_among_the_others_and_leaves_the_first() -> None:
    unproven, places = unauthenticated_limiter(16), ConcurrencyLimiter(1)
    with RequestLease(ByteBudget(0)) as stay:
        stay.acquire_slot(unproven, "")
        assert (len(unproven), len(places)) == (1, 0)
        stay.acquire_slot(places, "a")
        assert (len(unproven), len(places)) == (0, 1)
        with take(unproven, "") as other, pytest.raises(DragomanError):
            other.acquire_slot(places, "b")
        assert (len(unproven), len(places)) == (0, 1)
    assert len(places) == 0


@pytest.mark.parametrize(("most", "unproven"), [(1, 1), (15, 1), (16, 2), (2_000, 250)])
def test_strangers_with_signatures_have_an_eighth_of_their_own(most: int, unproven: int) -> None:
    places = unauthenticated_limiter(most)
    with ExitStack() as held:
        for _ in range(unproven - unproven // 8):
            held.enter_context(take(places, ""))
        with pytest.raises(DragomanError):
            take(places, "")
