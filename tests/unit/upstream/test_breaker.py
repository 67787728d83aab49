"""A model that is down is not asked by everybody, and is found again when it is back."""

from __future__ import annotations

from dragoman.upstream.breaker import Breaker


def failing(times: int, now_s: float = 0.0) -> Breaker:
    breaker = Breaker(failures=3, open_s=10)
    for _ in range(times):
        breaker.failed(now_s)
    return breaker


def test_failures_now_and_then_change_nothing() -> None:
    breaker = failing(2)
    breaker.succeeded()
    breaker.failed(0)
    breaker.failed(0)
    assert breaker.wait_s(0) == 0


def test_failures_in_a_row_open_it() -> None:
    breaker = failing(3)
    assert breaker.wait_s(0) == 10
    assert breaker.wait_s(4) == 6


def test_one_request_probes_and_the_others_wait_for_it() -> None:
    breaker = failing(3)
    assert breaker.wait_s(10) == 0
    assert breaker.wait_s(10) == 30
    breaker.succeeded()
    assert breaker.wait_s(10) == 0


def test_a_failed_probe_opens_it_again() -> None:
    breaker = failing(3)
    assert breaker.wait_s(10) == 0
    breaker.failed(11)
    assert breaker.wait_s(12) == 9


def test_a_probe_that_never_came_back_is_followed_by_another() -> None:
    breaker = failing(3)
    assert breaker.wait_s(10) == 0
    assert breaker.wait_s(41) == 0


def test_a_probe_that_was_never_sent_leaves_it_to_the_next() -> None:
    breaker = failing(3)
    assert breaker.wait_s(10) == 0
    breaker.unasked(11)
    assert breaker.wait_s(11) == 0
    assert breaker.wait_s(11) == 30


def test_who_did_not_ask_opens_and_closes_nothing() -> None:
    breaker = failing(2)
    breaker.unasked(0)
    assert breaker.wait_s(0) == 0
    breaker.failed(0)
    assert breaker.wait_s(0) == 10


def test_who_only_looks_is_no_probe() -> None:
    breaker = failing(3)
    assert (breaker.failures, breaker.rests_s(4), breaker.rests_s(10)) == (3, 6, 0)
    assert breaker.wait_s(10) == 0, "the probe is still to come"
    breaker.succeeded()
    assert (breaker.failures, breaker.rests_s(10)) == (0, 0)
