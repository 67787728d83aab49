"""What a request used: exact sums, costs in millionths, unknown prices told, tools with their outcomes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dragoman.config.model import LimitsConfig, PriceConfig
from dragoman.ir import Usage
from dragoman.notes import Note
from dragoman.observe.record import Attempt, ClientToolResult, RequestRecord, ToolRun
from dragoman.observe.usage import (
    SUMS,
    CostCalculator,
    UsageGroup,
    client_name,
    cost_micro_usd,
    count_retries,
    find_price,
    group_tallies,
    is_counted,
    merge,
    repaired_tools,
    tallies_of,
    total_sums,
)
from dragoman.store import Tally

NO_LIMITS = LimitsConfig()
DAY = "2026-11-16"
RECORD = RequestRecord(
    id="req_1",
    started_s=1_794_871_800.0,  # 23:30 UTC of that day
    method="POST",
    path="/v1/messages",
    client="claude-cli/2.1.0 (external, cli)",
    dialect="anthropic",
    caller="scope1",
    session="s1",
    asked_model="sonnet",
    model="gemini-2.5-flash",
    usage=Usage(input_tokens=1_000_000, cached_tokens=400_000, output_tokens=100_000, thought_tokens=9),
    attempts=(Attempt(model="gemini-2.5-flash", status=200),),
    total_ms=120,
    wait_ms=100,
)


def record(**changes: Any) -> RequestRecord:
    return msgspec.structs.replace(RECORD, **changes)


def sums_of(
    one: RequestRecord, kind: str, limits: LimitsConfig = NO_LIMITS
) -> dict[tuple[str, ...], dict[str, int]]:
    return {sums.labels: sums.sums for sums in tallies_of(one, limits) if sums.kind == kind}


def test_the_sums_of_a_request() -> None:
    assert sums_of(RECORD, "total") == {
        ("scope1", "claude-cli", "anthropic", "gemini-2.5-flash"): {
            "requests": 1,
            "input": 1_000_000,
            "cached": 400_000,
            "output": 100_000,
            "thought": 9,
            "micro_usd": 180_000 + 12_000 + 250_000,
            "ms": 120,
            "wait_ms": 100,
        }
    }
    (session,) = sums_of(RECORD, "session").items()
    assert session[0] == ("scope1", "s1")
    assert session[1] == next(iter(sums_of(RECORD, "total").values()))
    assert {sums.day for sums in tallies_of(RECORD, NO_LIMITS)} == {DAY}
    assert sums_of(record(session=""), "session") == {}


def test_the_table_of_sums_has_everything_that_is_summed() -> None:
    full = record(
        error="overloaded",
        left=True,
        notes=(Note("mended", "Read.n", ""), Note("sentinel", "", "")),
        calls=("Read",),
        own_calls=("look",),
        results=(ClientToolResult("Read", True, 3, 5),),
        runs=(ToolRun(name="look", failed=True, size=3, ms=5),),
        attempts=(Attempt(model="x", error="overloaded"), Attempt(model="x")),
    )
    found: dict[str, set[str]] = {}
    for one in (*tallies_of(full, NO_LIMITS), *tallies_of(record(model="gemini-9-ultra"), NO_LIMITS)):
        found.setdefault(one.kind, set()).update(one.sums)
    assert found == {kind: set(names) for kind, names in SUMS.items()}


def test_a_day_ends_at_midnight_of_utc() -> None:
    assert next(tallies_of(record(started_s=RECORD.started_s + 1800), NO_LIMITS)).day == "2026-11-17"


def test_a_request_that_failed_and_one_whose_client_left() -> None:
    failed = sums_of(record(error="overloaded", left=True, model="", dialect="", usage=Usage()), "total")
    assert failed == {
        ("scope1", "claude-cli", "-", "-"): {"requests": 1, "failed": 1, "left": 1, "ms": 120, "wait_ms": 100}
    }


class TestPrices:
    def test_an_unknown_price_is_no_price_of_nothing(self) -> None:
        unknown = record(model="gemini-9-ultra")
        assert cost_micro_usd(unknown, NO_LIMITS) is None
        (sums,) = sums_of(unknown, "total").values()
        assert sums["unpriced"] == 1
        assert "micro_usd" not in sums

    def test_nothing_used_costs_nothing_whatever_the_price(self) -> None:
        assert cost_micro_usd(record(model="gemini-9-ultra", usage=Usage()), NO_LIMITS) == 0

    def test_what_ran_behind_an_alias_has_the_price(self) -> None:
        assert (
            cost_micro_usd(record(model="my-alias", answered_model="gemini-2.5-flash"), NO_LIMITS) == 442_000
        )

    def test_an_alias_of_googles_has_the_price_of_what_it_stands_for(self) -> None:
        assert find_price(NO_LIMITS, "gemini-pro-latest") == find_price(NO_LIMITS, "gemini-3.1-pro-preview")
        assert find_price(NO_LIMITS, "gemini-pro-latest") is not None

    @pytest.mark.parametrize("named", ["gemini-2.5-flash", "my-alias"])
    def test_the_settings_know_better(self, named: str) -> None:
        limits = LimitsConfig(prices={named: PriceConfig(input=10, output=20, cached=1)})
        one = record(model="my-alias", answered_model="gemini-2.5-flash")
        assert cost_micro_usd(one, limits) == 6_000_000 + 400_000 + 2_000_000

    def test_without_a_price_of_its_own_the_cache_costs_what_input_costs(self) -> None:
        limits = LimitsConfig(prices={"gemini-2.5-flash": PriceConfig(input=1, output=0)})
        assert cost_micro_usd(RECORD, limits) == 1_000_000

    def test_small_costs_are_not_rounded_away(self) -> None:
        tiny = record(usage=Usage(input_tokens=1, output_tokens=1))
        assert cost_micro_usd(tiny, NO_LIMITS) == 3  # 0.3 + 2.5 millionths


class TestTools:
    def test_calls_results_failures_times_and_sizes(self) -> None:
        one = record(
            calls=("Read", "Read", "Bash"),
            own_calls=("search", "search", "slow"),
            results=(
                ClientToolResult("Read", True, 10, 250),
                ClientToolResult("Read", False, 30, None),
                ClientToolResult("", False, 1, 0),
            ),
            runs=(
                ToolRun(name="search", ms=40, size=100),
                ToolRun(name="search", ms=60, size=7, failed=True),
                ToolRun(name="slow", ms=5, later=True),
            ),
        )
        assert sums_of(one, "tool") == {
            ("Read", "client"): {"calls": 2, "results": 2, "failed": 1, "bytes": 40, "ms": 250, "timed": 1},
            ("Bash", "client"): {"calls": 1},
            ("-", "client"): {"results": 1, "bytes": 1, "timed": 1},
            ("search", "gateway"): {
                "calls": 2,
                "results": 2,
                "failed": 1,
                "bytes": 107,
                "ms": 100,
                "timed": 2,
            },
            ("slow", "gateway"): {"calls": 1, "ms": 5, "timed": 1},
        }
        (sums,) = sums_of(one, "total").values()
        assert sums["calls"] == 6

    def test_mended_arguments_belong_to_their_tool(self) -> None:
        one = record(
            calls=("Read", "fs.Read"),
            own_calls=("search",),
            notes=(
                Note("mended", "Read.path", "a text"),
                Note("mended", "Read", "an object"),
                Note("mended", "fs.Read.path", "a text"),
                Note("mended", "search.query", "a text"),
                Note("mended", "messages[3].content[0].input", "of an older answer, by the client"),
                Note("repaired", "Read.path", "no arguments"),
                Note("sentinel", "contents[1]", "lost"),
            ),
        )
        assert list(repaired_tools(one)) == ["Read", "Read", "fs.Read", "search"]
        tools = sums_of(one, "tool")
        assert tools["Read", "client"]["repairs"] == 2
        assert tools["search", "gateway"]["repairs"] == 1
        (sums,) = sums_of(one, "total").values()
        assert (sums["repairs"], sums["sentinels"]) == (4, 1)


def test_rounds_of_own_tools_are_no_retries() -> None:
    good, bad = Attempt(model="m", status=200), Attempt(model="m", status=503, error="overloaded")
    assert count_retries(record(attempts=(good, good, good))) == 0
    assert count_retries(record(attempts=(bad, good, bad, good))) == 2
    assert count_retries(record(attempts=(bad, bad))) == 1
    assert count_retries(record(attempts=())) == 0


@pytest.mark.parametrize(
    ("changes", "counted"),
    [
        ({}, True),
        ({"model": "", "error": "invalid_request", "asked_model": ""}, True),
        ({"model": "", "asked_model": ""}, False),  # counting tokens, telemetry
        ({"method": "GET"}, False),
        ({"caller": "", "error": "auth"}, False),  # a stranger could fill the ledger
    ],
)
def test_what_is_counted(changes: dict[str, Any], counted: bool) -> None:
    assert is_counted(record(**changes)) is counted


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("claude-cli/2.1.0 (external, cli)", "claude-cli"),
        ("codex_cli_rs/0.50.0 (Mac OS)", "codex_cli_rs"),
        ("Anthropic/Python 1.2", "Anthropic"),
        ("", "-"),
        ("\x1b[31m", "-"),
        ("x" * 99, "x" * 40),
    ],
)
def test_the_name_of_a_client(agent: str, name: str) -> None:
    assert client_name(agent) == name


def tally(labels: tuple[str, ...], day: str = DAY, kind: str = "total", **sums: int) -> Tally:
    return Tally(day=day, kind=kind, labels=labels, sums=sums)


def test_what_is_alike_is_merged() -> None:
    merged = merge(
        [tally(("a",), n=1), tally(("b",), n=1), tally(("a",), n=2, m=1), tally(("a",), "2026-11-17", n=1)]
    )
    assert merged == [tally(("a",), n=3, m=1), tally(("b",), n=1), tally(("a",), "2026-11-17", n=1)]


def test_groups_and_their_order() -> None:
    tallies = [
        tally(("k1", "cli", "d", "cheap"), micro_usd=1, requests=1),
        tally(("k2", "cli", "d", "dear"), micro_usd=9, requests=1),
        tally(("k1", "web", "d", "cheap"), "2026-11-15", micro_usd=2, requests=5),
    ]
    assert [(one.names, one.sums["micro_usd"]) for one in group_tallies(tallies, "model")] == [
        (("dear",), 9),
        (("cheap",), 3),
    ]
    assert [one.names for one in group_tallies(tallies, "day")] == [("2026-11-15",), (DAY,)]
    assert [one.names for one in group_tallies(tallies, "client")] == [("cli",), ("web",)]
    assert [one.names for one in group_tallies(tallies, "key")] == [("k2",), ("k1",)]
    tools = [tally(("Read", "client"), kind="tool", calls=n, bytes=1) for n in (1, 2)]
    assert group_tallies(tools, "tool") == [
        UsageGroup(names=("Read", "client"), sums={"calls": 3, "bytes": 2})
    ]
    assert total_sums(group_tallies(tallies, "key")) == {"micro_usd": 12, "requests": 7}


def test_prices_are_remembered_and_names_without_end_are_not() -> None:
    prices = CostCalculator(NO_LIMITS)
    for number in range(1000):
        assert prices.cost_micro_usd(record(model=f"gemini-2.5-flash-{number}")) == 442_000
    assert len(prices._cache) <= 256
    assert prices.cost_micro_usd(record(model="gemini-9-ultra")) is None
    assert prices.cost_micro_usd(record(model="gemini-9-ultra")) is None
