"""What one attempt teaches about keys and models, and what an attempt that was never made does not."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import Config, ModelsConfig, UpstreamConfig
from dragoman.errors import ErrorKind, UpstreamError, UpstreamProtocolError
from dragoman.gateway.auth.authenticator import Caller
from dragoman.gateway.context import Gateway
from dragoman.gateway.relay.attempt_plan import AttemptPlan
from dragoman.ir import Request
from dragoman.store import MemoryStore

MODEL = "gemini-3.8-flash"
SPENT = UpstreamError("x", kind="quota", status=429)
DOWN = UpstreamError("x", kind="overloaded", status=503)
#: What another form of the request may cure.
CURED = ("pairing", "schema_form", "signature", "states", "thinking", "tool_mix")
FIELDS = ("a", "b", "c", "d")


def refusal(kind: ErrorKind, code: str = "", place: str = "") -> UpstreamError:
    error = UpstreamError("x", kind=kind, status=500, code=code)
    error.place = place
    return error


KINDS: tuple[ErrorKind, ...] = ("overloaded", "internal", "rate_limit", "quota")
TROUBLES = [
    *map(refusal, KINDS),
    *(refusal("invalid_request", code) for code in CURED),
    *(refusal("invalid_request", "field", name) for name in FIELDS),
]


@pytest.fixture
async def gateway() -> AsyncIterator[Gateway]:
    settings = UpstreamConfig(api_keys=("AIza-one", "AIza-two"))
    gateway = Gateway(Config(upstream=settings), MemoryStore(), keys=("k" * 20,))
    yield gateway
    await gateway.close()


def way(gateway: Gateway) -> AttemptPlan:
    return AttemptPlan(gateway, Caller(), Request(model=MODEL, messages=(), session="s"))


async def attempt(one: AttemptPlan, error: UpstreamError | None) -> None:
    await one.headers()
    await one.record_outcome(error)


def rests_of(gateway: Gateway) -> list[float]:
    return sorted(seconds for state in gateway.key_pool.states() for seconds in state.cooldowns_s.values())


async def open_breaker(gateway: Gateway) -> None:
    for _ in range(5):
        await attempt(way(gateway), DOWN)


async def test_l3_that_all_keys_rest_shortens_no_rest(gateway: Gateway) -> None:
    """A spent day must not become a minute because somebody asked meanwhile."""
    one = way(gateway)
    await attempt(one, SPENT)
    await attempt(one, SPENT)
    with pytest.raises(UpstreamError, match="all 2 keys rest") as told:
        await one.headers()
    await one.record_outcome(told.value)
    assert all(seconds > 1700 for seconds in rests_of(gateway))
    assert len(rests_of(gateway)) == 2


async def test_l4_a_model_that_is_left_alone_wakes_no_key(gateway: Gateway) -> None:
    one = way(gateway)
    await attempt(one, SPENT)
    for _ in range(5):
        gateway.breaker(MODEL).record_failure(1e12)
    with pytest.raises(UpstreamError, match="left alone") as told:
        await one.headers()
    await one.record_outcome(told.value)
    assert len(rests_of(gateway)) == 1


async def test_failures_in_a_row_leave_the_model_alone(gateway: Gateway) -> None:
    await open_breaker(gateway)
    with pytest.raises(UpstreamError, match="left alone"):
        await way(gateway).headers()


@pytest.mark.parametrize(
    "answer",
    [
        UpstreamError("x", kind="invalid_request", status=400),
        UpstreamError("x", kind="rate_limit", status=429),
        UpstreamProtocolError("x", kind="overloaded"),
        None,
    ],
)
async def test_any_answer_shows_that_the_model_is_there(
    gateway: Gateway, answer: UpstreamError | None
) -> None:
    for _ in range(4):
        await attempt(way(gateway), DOWN)
    await attempt(way(gateway), answer)
    await attempt(way(gateway), DOWN)
    await way(gateway).headers()


@pytest.mark.parametrize("kind", ["overloaded", "internal", "timeout"])
async def test_no_answer_shows_nothing_of_the_kind(gateway: Gateway, kind: ErrorKind) -> None:
    for _ in range(5):
        await attempt(way(gateway), UpstreamError("x", kind=kind))
    with pytest.raises(UpstreamError, match="left alone"):
        await way(gateway).headers()


async def test_a_probe_without_a_key_is_left_to_the_next(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = way(gateway)
    await attempt(one, SPENT)
    await attempt(one, SPENT)
    breaker = gateway.breaker(MODEL)
    for _ in range(5):
        breaker.record_failure(-1000.0)  # long ago: whoever comes now is the probe
    for _ in range(2):
        with pytest.raises(UpstreamError, match="keys rest"):
            await one.headers()


@given(st.lists(st.sampled_from(TROUBLES), max_size=60))
async def test_l2_whatever_google_says_attempts_and_waits_have_an_end(troubles: list[UpstreamError]) -> None:
    """Each cure is tried once with each model; everything else shares one budget."""
    models = ModelsConfig(fallbacks={MODEL: ("gemini-a", "gemini-b")})
    gateway = Gateway(
        Config(upstream=UpstreamConfig(api_key="AIza-one"), models=models), MemoryStore(), keys=()
    )
    one = way(gateway)
    tried: list[str] = [one.target.model]
    forms = {one.target}
    waited = 0.0
    for trouble in troubles:
        wait_s = one.plan_next(trouble)
        if wait_s is None:
            break
        waited += wait_s
        if one.note is not None:
            assert one.target not in forms, "the same form again"
        forms.add(one.target)
        tried.append(one.target.model)
    budget = gateway.retry_budget
    healed = len(CURED) + 3
    assert len(tried) <= budget.attempts + healed * budget.attempts
    assert waited <= budget.wait_s
    assert tried == sorted(tried, key=[MODEL, "gemini-a", "gemini-b"].index), (
        "a model that was given up is left"
    )
    await gateway.close()


async def test_l5_attempts_and_waits_together_take_no_longer_than_one_request_may(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Google that takes minutes to say that it is busy is not asked three times for as long as once."""
    now_s = 1000.0
    monkeypatch.setattr("dragoman.gateway.relay.attempt_plan.time.monotonic", lambda: now_s)
    one = way(gateway)
    await attempt(one, DOWN)
    now_s += 3599
    assert one.remaining_s == 1
    assert one.plan_next(DOWN) is not None
    now_s += 0.9
    await attempt(one, DOWN)
    assert one.plan_next(DOWN) is None
    now_s += 10
    assert one.remaining_s == 0
    assert one.plan_next(refusal("invalid_request", "signature")) is None
