"""Every fault of the emulator behind the real gateway: the client gets the answer, or the truth."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import aiohttp
import msgspec
import pytest

from dragoman.config import Config, UpstreamConfig
from dragoman.emulator.faults import FAULTS, FaultDirector, parse_scheduled_fault
from dragoman.emulator.faults.kinds import FINISHES
from dragoman.emulator.http_server import EmulatorServer
from dragoman.emulator.service import EmulatorService
from dragoman.gateway.app import GatewayApp
from dragoman.gateway.context import Gateway
from dragoman.store import MemoryStore
from tests.faults.harness import GOOGLE_KEY, KEY, Running, events_of, serving, text_of, types_of

WORDS = ("word " * 40).strip()
ASK = [{"role": "user", "content": f"say {WORDS}"}]
#: What the emulator says to the gateway's own words after a spoilt call, which come last in the second attempt.
CORRECTED = re.compile(
    r"This is the offline Gemini emulator\. You said: Your last reply was not .*declared\."
)

#: What the client gets: the answer, an error, or an ending that is no success and says so.
Outcome = Literal["good", "error", "max_tokens", "refusal"]


class Expected(msgspec.Struct, frozen=True):
    """`once`: the fault happens to the first attempt; `always`: to all of them."""

    once: Outcome
    always: Outcome


CURED = Expected("good", "error")
HARMLESS = Expected("good", "good")
FATAL = Expected("error", "error")

#: Faults before any content, which a second attempt cures.
RETRIED = """
quota_minute overloaded internal deadline unavailable_page malformed_call unexpected_call empty_stop reset refused
cut_after reset_after empty_body
"""
REFUSED = "quota_day quota_zero bad_key no_key wrong_token location"
LEGAL = """
slow_first_byte slow_stream silence wrong_content_type extra_blank comments small_pieces
"""
#: After content has been passed on there is no second attempt; a whole answer can be asked for again.
BROKEN_LATE = "no_finish stream_error invalid_utf8 truncated_json cut_after=900 reset_after=900"
ARGUMENTS = {
    "quota_minute": 0.01,
    "slow_first_byte": 0.05,
    "slow_stream": 0.01,
    "silence": 0.05,
    "refused": 0.2,
    "giant_chunk": 2_000_000,
    "small_pieces": 7,
}
#: The second attempt after a reset comes at once, and finds nobody at home.
ATTEMPTS = {"refused": 3}


def expectations() -> dict[str, dict[bool, Expected]]:
    """For each fault, what a stream (True) and a whole answer (False) come to."""
    table = {
        **{name: dict.fromkeys((True, False), CURED) for name in RETRIED.split()},
        **{name: dict.fromkeys((True, False), FATAL) for name in REFUSED.split()},
        **{name: dict.fromkeys((True, False), HARMLESS) for name in LEGAL.split()},
        **{name: {True: FATAL, False: CURED} for name in BROKEN_LATE.split()},
        "prompt_block": dict.fromkeys((True, False), Expected("refusal", "refusal")),
        "giant_chunk": dict.fromkeys((True, False), HARMLESS),
    }
    for finish in FINISHES:
        outcome = CURED
        if finish.partial:
            outcome = Expected("refusal", "refusal") if finish.voids else Expected("max_tokens", "max_tokens")
        table[finish.name] = dict.fromkeys((True, False), outcome)
    return table


EXPECTED = expectations()


def test_every_fault_is_tried() -> None:
    assert {name.partition("=")[0] for name in EXPECTED} == set(FAULTS)


class Faulty:
    """A Google whose faults can be exchanged while it runs."""

    def __init__(self) -> None:
        self.plan("")

    def plan(self, fault: str) -> None:
        self._service = EmulatorService(
            "test", FaultDirector(plan=[parse_scheduled_fault(fault)] if fault else [])
        )

    def answer(self, question: Any) -> Any:
        return self._service.handle(question)


@asynccontextmanager
async def gateway_on(google: Faulty, **upstream: Any) -> AsyncIterator[Running]:
    listener = EmulatorServer(google.answer)
    base_url = await listener.start()
    config = Config(upstream=UpstreamConfig(base_url=base_url, api_key=GOOGLE_KEY, **upstream))
    app = GatewayApp(Gateway(config, MemoryStore(), keys=(KEY,)))
    try:
        async with serving(app) as url, aiohttp.ClientSession() as session:
            yield Running(url, app, session, {"authorization": f"Bearer {KEY}"})
    finally:
        await app.gateway.close()
        await listener.close()


async def outcome_of(running: Running, *, stream: bool) -> Outcome:
    """What the client sees; whatever is not clean fails here."""
    response = await running.messages(stream=stream, messages=ASK, tools=[])
    if response.status != 200:
        return error_in(await response.json())
    if not stream:
        body = await response.json()
        said = "".join(block["text"] for block in body["content"])
        return ending(body["stop_reason"], said)
    events = await events_of(response)
    types = types_of(events)
    assert types[0] == "message_start"
    assert types.count("content_block_start") == types.count("content_block_stop")
    if types[-1] == "error":
        assert "message_stop" not in types
        return error_in(events[-1])
    assert types[-2:] == ["message_delta", "message_stop"]
    return ending(events[-2]["delta"]["stop_reason"], text_of(events))


def error_in(body: dict[str, Any]) -> Outcome:
    assert body["type"] == "error"
    assert set(body["error"]) == {"type", "message"}
    assert body["error"]["type"].endswith("_error")
    assert body["error"]["message"]
    return "error"


def ending(stop_reason: str, said: str) -> Outcome:
    said = said.lstrip("x")
    if stop_reason == "end_turn":
        assert said == WORDS or CORRECTED.fullmatch(said)
        return "good"
    assert WORDS.startswith(said)
    assert said != WORDS
    assert stop_reason in ("max_tokens", "refusal")
    return "max_tokens" if stop_reason == "max_tokens" else "refusal"


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("name", EXPECTED)
async def test_a_fault_ends_in_the_answer_or_in_an_honest_error(
    name: str, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    expected = EXPECTED[name][stream]
    fault = f"{name}={ARGUMENTS[name]}" if name in ARGUMENTS else name
    google = Faulty()
    async with gateway_on(google, max_attempts=ATTEMPTS.get(name, 2)) as running:
        google.plan(f"{fault}*1")
        assert await outcome_of(running, stream=stream) == expected.once
        google.plan(fault)
        assert await outcome_of(running, stream=stream) == expected.always
    assert [record for record in caplog.records if record.levelno >= logging.ERROR or record.exc_info] == []


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("fault", ["silence=3600", "slow_first_byte=3600"])
async def test_e5_a_silent_google_is_a_timeout_and_no_hang(fault: str, stream: bool) -> None:
    google = Faulty()
    google.plan(fault)
    limits = {"idle_timeout_s": 0.4, "total_timeout_s": 1.0, "max_attempts": 2}
    async with gateway_on(google, **limits) as running:
        assert await outcome_of(running, stream=stream) == "error"


CALL = 'use get_weather with {"city": "Oslo"}'
SPOILT = """
no_finish stream_error truncated_json invalid_utf8 cut_after=300 cut_after=700 reset_after=700 finish_max_tokens
finish_safety malformed_call
"""


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("fault", SPOILT.split())
async def test_a_spoilt_call_never_looks_like_a_good_one(fault: str, stream: bool) -> None:
    google = Faulty()
    google.plan(fault)
    async with gateway_on(google, max_attempts=1) as running:
        response = await running.messages(stream=stream, messages=[{"role": "user", "content": CALL}])
        if response.status != 200:
            assert error_in(await response.json()) == "error"
            return
        if not stream:
            assert (await response.json())["stop_reason"] in ("max_tokens", "refusal")
            return
        events = await events_of(response)
    stops = [event["delta"]["stop_reason"] for event in events if event["type"] == "message_delta"]
    assert types_of(events)[-1] == "error" or stops in (["max_tokens"], ["refusal"])
