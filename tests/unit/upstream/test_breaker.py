"""A model that is down is not asked by everybody, and is found again when it is back."""

from __future__ import annotations

from dragoman.upstream.breaker import CircuitBreaker


def failing(times: int, now_s: float = 0.0) -> CircuitBreaker:
    breaker = CircuitBreaker(failures=3, open_s=10)
    for _ in range(times):
        breaker.record_failure(now_s)
    return breaker


def test_failures_now_and_then_change_nothing() -> None:
    breaker = failing(2)
    breaker.record_success()
    breaker.record_failure(0)
    breaker.record_failure(0)
    assert breaker.acquire(0) == 0


def test_failures_in_a_row_open_it() -> None:
    breaker = failing(3)
    assert breaker.acquire(0) == 10
    assert breaker.acquire(4) == 6


def test_one_request_probes_and_the_others_wait_for_it() -> None:
    breaker = failing(3)
    assert breaker.acquire(10) == 0
    assert breaker.acquire(10) == 30
    breaker.record_success()
    assert breaker.acquire(10) == 0


def test_a_failed_probe_opens_it_again() -> None:
    breaker = failing(3)
    assert breaker.acquire(10) == 0
    breaker.record_failure(11)
    assert breaker.acquire(12) == 9


def test_a_probe_that_never_came_back_is_followed_by_another() -> None:
    breaker = failing(3)
    assert breaker.acquire(10) == 0
    assert breaker.acquire(41) == 0


def test_a_probe_that_was_never_sent_leaves_it_to_the_next() -> None:
    breaker = failing(3)
    assert breaker.acquire(10) == 0
    breaker.release(11)
    assert breaker.acquire(11) == 0
    assert breaker.acquire(11) == 30


def test_who_did_not_ask_opens_and_closes_nothing() -> None:
    breaker = failing(2)
    breaker.release(0)
    assert breaker.acquire(0) == 0
    breaker.record_failure(0)
    assert breaker.acquire(0) == 10


def test_who_only_looks_is_no_probe() -> None:
    breaker = failing(3)
    assert (breaker.failures, breaker.remaining_open_s(4), breaker.remaining_open_s(10)) == (3, 6, 0)
    assert breaker.acquire(10) == 0, "the probe is still to come"
    breaker.record_success()
    assert (breaker.failures, breaker.remaining_open_s(10)) == (0, 0)
