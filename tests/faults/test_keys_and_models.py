"""Several keys, models that stand in, a model that is down, and budgets: over real connections."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dragoman.config import ModelsConfig
from dragoman.config.model import LimitsConfig, PriceConfig, QuotaConfig
from tests.faults.harness import (
    EMPTY,
    GOOGLE_KEY,
    HELLO,
    TOOLS,
    Arrived,
    FakeGoogle,
    Running,
    events_of,
    gateway,
    refuses,
    streams,
    text_of,
)
from tests.record_collector import RecordCollector

Act = Callable[[asyncio.StreamWriter], Awaitable[None]]

MINUTE = refuses(429, "slow down", {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "30s"})
DAY = refuses(
    429,
    "spent",
    {
        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
        "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}],
    },
)
BUSY = refuses(503, "overloaded")
MODELS = ModelsConfig(sonnet="gemini-a", fallbacks={"gemini-a": ("gemini-b", "gemini-c")})


class ByRequest(FakeGoogle):
    """Answers by what was asked: `decide` sees the key and the model."""

    def __init__(self, decide: Callable[[str, str], Act]) -> None:
        super().__init__()
        self._decide = decide

    def answer_to(self, arrived: Arrived) -> Act:
        return self._decide(arrived.headers["x-goog-api-key"], model_of(arrived))


def model_of(arrived: Arrived) -> str:
    return arrived.path.rpartition("/")[2].partition(":")[0]


def asked(google: FakeGoogle) -> list[tuple[str, str]]:
    return [(one.headers["x-goog-api-key"], model_of(one)) for one in google.arrived]


async def say(running: Running, session: str = "s", **more: Any) -> tuple[int, str, Any]:
    """Status, text and headers of one streamed answer."""
    running.headers["x-claude-code-session-id"] = session
    async with await running.messages(**more) as response:
        if response.status != 200:
            return response.status, await response.text(), response.headers
        return 200, text_of(await events_of(response)), response.headers


async def test_l4_a_key_that_is_out_of_quota_is_left_alone_by_everybody() -> None:
    def decide(key: str, _model: str) -> Act:
        return MINUTE if key == GOOGLE_KEY else streams(HELLO)

    google = ByRequest(decide)
    async with gateway(google, upstream={"api_keys": ("AIza-second",)}) as running:
        for number in range(20):
            assert (await say(running, f"s{number}"))[:2] == (200, "Hello")
    used = [key for key, _ in asked(google)]
    assert used.count(GOOGLE_KEY) == 1
    assert used.count("AIza-second") == 20


async def test_l4_a_conversation_stays_with_its_key() -> None:
    google = ByRequest(lambda _key, _model: streams(HELLO))
    keys = tuple(f"AIza-{number}" for number in range(4))
    async with gateway(google, upstream={"api_keys": keys}) as running:
        for session in ("a", "b", "c", "d", "e", "f"):
            for _ in range(3):
                await say(running, session)
    used = [key for key, _ in asked(google)]
    assert all(len(set(used[start : start + 3])) == 1 for start in range(0, 18, 3))
    assert len(set(used)) > 1


@pytest.mark.parametrize(
    "refusal", [DAY, refuses(404, "no such model"), MINUTE], ids=["day", "gone", "minute"]
)
async def test_another_model_stands_in_and_the_client_is_told(refusal: Act) -> None:
    google = ByRequest(lambda _key, model: streams(HELLO) if model == "gemini-c" else refusal)
    async with gateway(google, models=MODELS, upstream={"max_attempts": 4}) as running:
        status, text, headers = await say(running)
    assert (status, text) == (200, "Hello")
    assert [model for _, model in asked(google)] == ["gemini-a", "gemini-b", "gemini-c"]
    assert headers["x-dragoman-model"] == "gemini-c"
    assert headers["x-dragoman-fallback"] == "gemini-a -> gemini-c"


async def test_a_request_that_google_refuses_is_refused_by_no_other_model_too() -> None:
    google = ByRequest(lambda _key, _model: refuses(400, "bad"))
    async with gateway(google, models=MODELS) as running:
        status, _, _ = await say(running)
    assert status == 400
    assert len(google.arrived) == 1


async def test_l2_attempts_are_counted_over_keys_and_models() -> None:
    google = ByRequest(lambda _key, _model: DAY)
    keys = tuple(f"AIza-{number}" for number in range(9))
    async with gateway(google, models=MODELS, upstream={"api_keys": keys, "max_attempts": 5}) as running:
        status, _, _ = await say(running)
    assert status == 429
    assert len(google.arrived) == 5


async def test_a_model_that_is_down_is_not_asked_by_everybody() -> None:
    google = ByRequest(lambda _key, _model: BUSY)
    async with gateway(google, upstream={"max_attempts": 1}) as running:
        for _ in range(12):
            status, text, headers = await say(running)
            assert status == 529
    assert len(google.arrived) == 5
    assert "left alone" in text
    assert int(headers["retry-after"]) <= 10


async def test_p5_a_budget_lets_exactly_so_many_through() -> None:
    google = ByRequest(lambda _key, _model: streams(HELLO))
    limits = LimitsConfig(key={"month": QuotaConfig(requests=7)})
    async with gateway(google, limits=limits) as running:
        bodies = [running.messages() for _ in range(20)]
        answers = await asyncio.gather(*bodies)
        statuses = [response.status for response in answers]
        refused = next(response for response in answers if response.status == 429)
        told = json.loads(await refused.text())
    assert statuses.count(200) == len(google.arrived) == 7
    assert "the limit of 7 requests a month for this key is reached" in told["error"]["message"]
    assert refused.headers["x-should-retry"] == "false"


async def test_p5_tokens_and_money_are_settled_by_what_was_used() -> None:
    google = ByRequest(lambda _key, _model: streams(HELLO))  # 7 tokens in, 3 out
    prices = {"gemini-a": PriceConfig(input=100_000.0, output=100_000.0)}  # 10 cents a token
    limits = LimitsConfig(session={"month": QuotaConfig(usd=3.0)}, prices=prices)
    async with gateway(google, limits=limits, models=MODELS) as running:
        messages = [{"role": "user", "content": "x"}]
        statuses = [(await say(running, "one", messages=messages, tools=[]))[0] for _ in range(5)]
        other, _, _ = await say(running, "two", messages=messages, tools=[])
    assert statuses == [200, 200, 200, 429, 429]
    assert other == 200


async def test_p5_an_attempt_that_came_to_nothing_is_paid_for_too() -> None:
    google = FakeGoogle(*[streams(EMPTY), streams(HELLO)] * 3)  # 10 tokens each
    limits = LimitsConfig(session={"month": QuotaConfig(tokens=30)})
    ear = RecordCollector()
    async with gateway(google, limits=limits, models=MODELS) as running:
        running.app.gateway.observer_hub.observers = (ear,)
        messages = [{"role": "user", "content": "x"}]
        statuses = [(await say(running, messages=messages, tools=[]))[0] for _ in range(3)]
    assert statuses == [200, 200, 429]
    assert len(google.arrived) == 4
    assert [(one.usage.input_tokens, one.usage.output_tokens) for one in ear.records[:2]] == [(14, 6)] * 2


async def test_p5_a_model_that_stands_in_is_paid_at_its_own_price() -> None:
    google = ByRequest(lambda _key, model: MINUTE if model == "gemini-a" else streams(HELLO))
    prices = {
        "gemini-a": PriceConfig(input=1.0, output=1.0),
        "gemini-b": PriceConfig(input=100_000.0, output=100_000.0),  # 10 cents a token
    }
    limits = LimitsConfig(session={"month": QuotaConfig(usd=1.5)}, prices=prices)
    async with gateway(google, limits=limits, models=MODELS) as running:
        messages = [{"role": "user", "content": "x"}]
        statuses = [(await say(running, messages=messages, tools=[]))[0] for _ in range(3)]
    assert statuses == [200, 200, 429]
    assert {model for _, model in asked(google)} == {"gemini-a", "gemini-b"}


async def test_p5_a_model_without_a_price_stands_in_for_nobody_where_money_is_limited() -> None:
    google = ByRequest(lambda _key, model: streams(HELLO) if model == "gemini-c" else DAY)
    prices = {name: PriceConfig(input=1.0, output=1.0) for name in ("gemini-a", "gemini-c")}
    limits = LimitsConfig(session={"month": QuotaConfig(usd=1.5)}, prices=prices)
    async with gateway(google, limits=limits, models=MODELS) as running:
        status, text, headers = await say(running)
    assert (status, text, headers["x-dragoman-model"]) == (200, "Hello", "gemini-c")
    assert [model for _, model in asked(google)] == ["gemini-a", "gemini-c"]


async def test_p5_without_a_price_no_money_is_spent() -> None:
    google = ByRequest(lambda _key, _model: streams(HELLO))
    limits = LimitsConfig(key={"day": QuotaConfig(usd=1)})
    async with gateway(google, limits=limits, models=MODELS) as running:
        status, text, _ = await say(running)
    assert status == 403
    assert "the price of gemini-a is not known: set limits.prices" in text
    assert not google.arrived


async def test_p1_a_loop_is_stopped_outside_the_agent() -> None:
    google = ByRequest(lambda _key, _model: streams(HELLO))
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for number in range(4):
        use = {"type": "tool_use", "id": f"c{number}", "name": TOOLS[0]["name"], "input": {"city": "Oslo"}}
        result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": "rain"}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    async with gateway(google, limits=LimitsConfig(repeated_calls=4)) as running:
        status, text, _ = await say(running, messages=messages)
        shorter, _, _ = await say(running, messages=messages[:-2])
    assert (status, shorter) == (429, 200)
    assert "get_weather was called 4 times" in text


async def test_a_slow_google_is_never_asked_twice_at_once() -> None:
    """No hedging: with other keys and other models at hand, one request is one call for as long as it is answered."""

    async def slow(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(1.5)
        await streams(HELLO, pause_s=0.3)(writer)

    google = FakeGoogle(slow)
    models = ModelsConfig(fallbacks={"gemini-3.8-flash": ("gemini-3.6-flash",)})
    async with gateway(google, upstream={"api_keys": ("AIza-second",)}, models=models) as running:
        response = await running.messages(model="gemini-3.8-flash")
        assert text_of(await events_of(response)) == "Hello"
        assert "x-dragoman-fallback" not in response.headers
    assert len(google.arrived) == 1
