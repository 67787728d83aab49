from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from dragoman.gateway.dashboard.models import KeyUsage, build_cost_report, count_attempts, last_days
from dragoman.gateway.dashboard.summaries import summarize_models, summarize_sessions, summarize_tools
from dragoman.ir import Usage
from dragoman.notes import Note
from dragoman.observe.record import Attempt, ClientToolResult, ToolRun
from dragoman.store import Tally
from tests.unit.gateway.dashboard.builders import record


def free(_: Any) -> float | None:
    return 0.5


def test_sessions_are_summed_up_from_the_newest() -> None:
    newest = record(
        session="a", started_s=20.0, total_ms=100, model="m2", calls=("x", "x", "y"), error="quota"
    )
    oldest = record(session="a", started_s=10.0, model="m1", usage=Usage(input_tokens=3, output_tokens=2))
    other = record(session="b", started_s=15.0, results=(ClientToolResult("x", True, 1),))
    (one, two) = summarize_sessions([newest, other, oldest, record(session="")], free)
    assert (one.id, one.requests, one.errors, one.calls, one.cost_usd) == ("a", 2, 1, 3, 1.0)
    assert (one.first_ms, one.last_ms, one.model) == (10_000, 20_100, "m2")
    assert (one.tokens_in, one.tokens_out, one.tools) == (3, 2, {"x": 2, "y": 1})
    assert (two.id, two.failed_results) == ("b", 1)


def test_tools_with_their_failures_times_and_sizes() -> None:
    calls = record(
        session="a", calls=("x", "x"), own_calls=("own",), runs=(ToolRun(name="own", size=5, ms=9),)
    )
    outcomes = [ClientToolResult("x", index == 0, 10 * (index + 1), index * 100) for index in range(10)]
    results = record(
        session="b",
        results=(*outcomes, ClientToolResult("x", False, 1, None), ClientToolResult("", False, 1)),
    )
    mended = record(calls=("x",), notes=(Note("mended", "x.n", "to a number"), Note("dropped", "x.n", "no")))
    x, own = summarize_tools([calls, results, mended])
    assert (x.name, x.calls, x.results, x.failed, x.mended) == ("x", 3, 11, 1, 1)
    assert (x.timed, x.median_ms, x.slow_ms) == (10, 500, 900)
    assert (x.bytes_total, x.bytes_most) == (551, 100)
    assert x.sessions == 2, "a request without a session is none"
    assert (own.own, own.results, own.bytes_total, own.median_ms) == (1, 1, 5, 9)


def test_what_others_will_answer_is_no_result_yet() -> None:
    (one,) = summarize_tools([record(own_calls=("x",), runs=(ToolRun(name="x", later=True),))])
    assert (one.own, one.results) == (1, 0)


def test_models_with_failures_and_retries() -> None:
    bad, good = Attempt(model="m", status=503, error="overloaded"), Attempt(model="m", status=200)
    retried = record(model="m", attempts=(bad, good), total_ms=40, first_byte_ms=4)
    failed = record(model="m", error="overloaded", attempts=(bad,), total_ms=9_999)
    (one,) = summarize_models([retried, failed, record(model="")], free)
    assert (one.requests, one.errors, one.retries, one.failures) == (2, 1, 1, {"overloaded": 2})
    assert (one.median_ms, one.first_byte_ms, one.cost_usd) == (40, 4, 1.0)


def test_a_price_that_nobody_knows_is_no_zero() -> None:
    costs = iter((0.5, None, 0.5, None))
    mixed = [record(model="m", session="s"), record(model="m", session="s")]
    (model,) = summarize_models(mixed, lambda _: next(costs))
    (session,) = summarize_sessions(mixed, lambda _: next(costs))
    assert (model.cost_usd, model.unpriced) == (session.cost_usd, session.unpriced) == (0.5, 1)


def test_attempts_are_counted_for_the_keys_we_have() -> None:
    keys = [KeyUsage(name="k1"), KeyUsage(name="k2")]
    attempts = (Attempt(model="m", key="k1", error="quota"), Attempt(model="m", key="k1"), Attempt(model="m"))
    count_attempts(keys, [record(attempts=attempts)])
    assert (keys[0].attempts, keys[0].failures, keys[1].attempts) == (2, {"quota": 1}, 0)


def tally(day: str, model: str, micro: int) -> Tally:
    labels = ("key", "client", "dialect", model)
    return Tally(day=day, kind="total", labels=labels, sums={"requests": 1, "micro_usd": micro})


def test_cost_by_day_the_dearest_first() -> None:
    days = last_days(date(2026, 3, 1), 3)
    assert days == ["2026-02-27", "2026-02-28", "2026-03-01"]
    shown = build_cost_report(
        [tally(days[0], "a", 1), tally(days[2], "b", 5), tally(days[2], "a", 2)], days, "model"
    )
    assert [(one.name, one.days) for one in shown.groups] == [("b", [0, 0, 5]), ("a", [1, 0, 2])]
    assert shown.sums == {"requests": 3, "micro_usd": 8}
    assert [one.name for one in build_cost_report([tally(days[0], "a", 1)], days, "client").groups] == [
        "client"
    ]


@pytest.mark.parametrize(("many", "shown"), [(8, 8), (9, 8), (30, 8)])
def test_too_many_are_one(many: int, shown: int) -> None:
    groups = build_cost_report(
        [tally("2026-03-01", f"m{n}", 100 - n) for n in range(many)], ["2026-03-01"], "model"
    ).groups
    assert len(groups) == shown
    assert sum(one.sums["requests"] for one in groups) == many
    assert sum(one.days[0] for one in groups) == sum(100 - n for n in range(many))
    assert (groups[-1].name == "others") is (many > 8)
