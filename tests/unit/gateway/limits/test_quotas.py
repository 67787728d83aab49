"""Budgets outside the agent: what is reserved, what is settled, what is said when a fuse blows."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import Config
from dragoman.config.model import LimitsConfig, PriceConfig, QuotaConfig, QuotaWindow
from dragoman.errors import DragomanError
from dragoman.gateway.limits.quota_meter import QuotaReservation
from dragoman.gateway.limits.quotas import (
    QuotaSubject,
    UsageEstimate,
    estimate_usage,
    find_looping_tool,
    needs_price,
    quota_exceeded,
    refuse_loop,
    reserve_charges,
    settle_charges,
)
from dragoman.gateway.telemetry.request_recorder import PendingToolCalls, RequestRecorder
from dragoman.ir import Message, Text, ToolCall, ToolResult, Usage
from dragoman.observe.prices import Price
from dragoman.observe.usage import find_price
from dragoman.store import MemoryStore

NOW = datetime(2026, 2, 28, 23, 59, 30, tzinfo=UTC)
WHO = QuotaSubject("caller", "chat")
TRAIL = RequestRecorder("one", PendingToolCalls(), method="POST", path="/v1/messages")
BOTH = LimitsConfig(
    key={"day": QuotaConfig(requests=10, tokens=1_000, usd=0.5)}, session={"minute": QuotaConfig(requests=3)}
)


def test_a_request_is_reserved_on_every_meter_that_has_a_limit() -> None:
    reservation = reserve_charges(BOTH, WHO, UsageEstimate(200, 7_000), NOW)
    assert [(one.name, one.amount, one.limit) for one in reservation.charges] == [
        ("key|day|caller|202602280000|requests", 1, 10),
        ("key|day|caller|202602280000|tokens", 200, 1_000),
        ("key|day|caller|202602280000|usd", 7_000, 500_000),
        ("session|minute|caller/chat|202602282359|requests", 1, 3),
    ]


def test_without_a_conversation_only_the_key_is_charged() -> None:
    assert all(
        one.name.startswith("key|")
        for one in reserve_charges(BOTH, QuotaSubject("caller"), UsageEstimate(), NOW).charges
    )


def test_no_limits_no_meters() -> None:
    assert reserve_charges(LimitsConfig(), WHO, UsageEstimate(5, 5), NOW).charges == ()
    assert not needs_price(LimitsConfig(key={"day": QuotaConfig(requests=1)}))
    assert needs_price(BOTH)


@pytest.mark.parametrize(
    ("window", "end"),
    [
        ("minute", datetime(2026, 3, 1, tzinfo=UTC)),
        ("hour", datetime(2026, 3, 1, tzinfo=UTC)),
        ("day", datetime(2026, 3, 1, tzinfo=UTC)),
        ("month", datetime(2026, 3, 1, tzinfo=UTC)),
    ],
)
def test_windows_end_with_the_calendar(window: QuotaWindow, end: datetime) -> None:
    (charge,) = reserve_charges(
        LimitsConfig(key={window: QuotaConfig(requests=1)}), WHO, UsageEstimate(), NOW
    ).charges
    assert charge.ends_s == end.timestamp()


async def test_the_rest_is_charged_and_too_much_is_given_back() -> None:
    meters = MemoryStore(NOW.timestamp).meters
    reservation = reserve_charges(BOTH, WHO, UsageEstimate(200, 7_000), NOW)
    assert await meters.charge(reservation.charges) == ""
    rest = settle_charges(reservation, UsageEstimate(260, 5_000))
    assert [(one.name.rpartition("|")[2], one.amount, one.limit) for one in rest] == [
        ("tokens", 60, 0),
        ("usd", -2_000, 0),
    ]
    await meters.charge(rest)
    shown = await meters.read([one.name for one in reservation.charges])
    assert list(shown.values()) == [1, 260, 5_000, 1]
    assert settle_charges(reservation, reservation.estimate) == []


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 500)), max_size=20))
async def test_after_all_is_settled_the_meters_show_what_was_used(requests: list[tuple[int, int]]) -> None:
    limits = LimitsConfig(key={"day": QuotaConfig(tokens=1_000_000)})
    meters = MemoryStore(NOW.timestamp).meters
    names: set[str] = set()
    for guessed, used in requests:
        reservation = reserve_charges(limits, WHO, UsageEstimate(guessed), NOW)
        await meters.charge(reservation.charges)
        await meters.charge(settle_charges(reservation, UsageEstimate(used)))
        names |= {one.name for one in reservation.charges}
    assert sum((await meters.read(names)).values()) == sum(used for _, used in requests)


@given(st.lists(st.integers(0, 500), min_size=1, max_size=8))
async def test_a_request_of_many_rounds_is_settled_as_one_of_a_single_one(rounds: list[int]) -> None:
    meters = MemoryStore(NOW.timestamp).meters
    limits = LimitsConfig(key={"day": QuotaConfig(tokens=1_000_000)})
    reservation = reserve_charges(limits, WHO, UsageEstimate(250), NOW)
    await meters.charge(reservation.charges)
    meter = QuotaReservation(meters, reservation, TRAIL, lambda _model: None)
    used = Usage()
    for tokens in rounds:
        used = used.plus(Usage(input_tokens=tokens))
        await meter.raise_for_next_round(used)
    await meter.settle(used)
    (charge,) = reservation.charges
    assert await meters.read([charge.name]) == {charge.name: sum(rounds)}


async def test_a_further_round_is_refused_where_it_would_pass_the_limit_and_nothing_is_charged() -> None:
    meters = MemoryStore(NOW.timestamp).meters
    reservation = reserve_charges(BOTH, WHO, UsageEstimate(200, 7_000), NOW)
    await meters.charge(reservation.charges)
    price = Price(input=1.0, output=1.0, cached=1.0)
    meter = QuotaReservation(meters, reservation, TRAIL, lambda _model: price)
    await meter.raise_for_next_round(Usage(input_tokens=300))
    before = await meters.read([one.name for one in reservation.charges])
    assert list(before.values()) == [1, 600, 7_000, 1]  # nothing is given back yet
    with pytest.raises(DragomanError, match="1,000 tokens a day for this key is reached"):
        await meter.raise_for_next_round(Usage(input_tokens=800))
    assert await meters.read(before) == before


@pytest.mark.parametrize(
    ("unit", "words"),
    [
        ("requests", "the limit of 10 requests a day for this key is reached (limits.key.day)"),
        ("tokens", "the limit of 1,000 tokens a day for this key is reached (limits.key.day)"),
        ("usd", "the limit of $0.5 a day for this key is reached (limits.key.day)"),
    ],
)
def test_a_blown_fuse_says_which_and_until_when(unit: str, words: str) -> None:
    reservation = reserve_charges(BOTH, WHO, UsageEstimate(), NOW)
    error = quota_exceeded(f"key|day|caller|202602280000|{unit}", reservation, NOW)
    assert (str(error), error.kind, error.retry_after_s) == (words, "quota", 30)


def test_prices_of_ones_own_win_and_an_unknown_price_is_unknown() -> None:
    own = LimitsConfig(prices={"gemini-2.5-pro": PriceConfig(input=1, output=2)})
    assert find_price(own, "gemini-2.5-pro") == Price(input=1, cached=1, output=2)
    assert find_price(own, "gemini-9-ultra") is None
    found = find_price(LimitsConfig(), "gemini-2.5-pro")
    assert found is not None
    assert found.input == 1.25


def test_money_is_counted_in_millionths_and_rounded_up() -> None:
    price = Price(input=0.1, cached=0.01, output=0.4)
    usage = Usage(input_tokens=11, cached_tokens=1, output_tokens=1)
    assert estimate_usage(usage, price) == UsageEstimate(12, 2)
    assert estimate_usage(usage, None) == UsageEstimate(12, 0)


def conversation(*results: str, name: str = "look") -> list[Message]:
    messages: list[Message] = [Message(role="user", parts=(Text(text="go"),))]
    for number, result in enumerate(results):
        args = b'{"a":1,"b":2}' if number % 2 else b'{"b": 2, "a": 1}'
        call = ToolCall(id=f"c{number}", name=name, args=args)
        answer = ToolResult(call_id=f"c{number}", content=(Text(text=result),))
        messages += [Message(role="model", parts=(call,)), Message(role="user", parts=(answer,))]
    return messages


def test_p1_the_same_call_with_the_same_result_is_a_loop() -> None:
    assert find_looping_tool(conversation("x", "x", "x"), 3) == "look"
    assert find_looping_tool(conversation("x", "x"), 3) == ""
    config = Config(limits=LimitsConfig(repeated_calls=3))
    with pytest.raises(DragomanError, match="look was called 3 times") as told:
        refuse_loop(config, conversation("x", "x", "x", "x"))
    assert told.value.kind == "quota"
    refuse_loop(config, conversation("x", "x"))
    refuse_loop(Config(), conversation("x", "x", "x", "x"))


def test_p1_another_result_is_progress_and_so_is_another_call() -> None:
    assert find_looping_tool(conversation("x", "x", "y", "x", "x"), 3) == ""
    loop = conversation("x", "x", "x")
    went_on = conversation("fine", name="write")
    assert find_looping_tool([*loop, *went_on], 3) == ""


def test_a_result_without_its_call_is_no_loop() -> None:
    orphan = ToolResult(call_id="nobody", content=())
    assert find_looping_tool([Message(role="user", parts=(orphan,))], 1) == ""
