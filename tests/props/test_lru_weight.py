"""A cache that is full holds what it says it weighs, in every dialect: the bound of a gateway's memory is a real one."""

from __future__ import annotations

import gc
import itertools
import tracemalloc
from collections.abc import Iterator

import msgspec
import pytest

from dragoman.dialects import CLIENTS
from dragoman.dialects.base import ClientDialect, Target
from dragoman.dialects.bedrock import ConverseClient
from dragoman.dialects.gemini.client import GeminiClient
from dragoman.incremental.lru import SHARED_BYTES, set_shared_limit, shared_bytes
from dragoman.translation.exchange import Exchange
from tests.props.conversation_strategies import Call, Result, Round, Step, Talk
from tests.props.dialect_encoders import TONGUES, speak

_MADE: dict[str, ClientDialect] = {"gemini": GeminiClient("m"), "bedrock": ConverseClient("m")}
_TARGET = Target(model="gemini-3.8-flash")
_LIMIT_BYTES = 512 * 1024
_ROUNDS = 6
_LAST = Round(["And now?"], [], "")
_CONVERSATIONS = 45
_TIMES = 2  # what is forgotten must be gone, too


@pytest.fixture(autouse=True)
def small_caches() -> Iterator[None]:
    set_shared_limit(0)
    gc.collect()
    gc.disable()
    set_shared_limit(_LIMIT_BYTES)
    yield
    tracemalloc.stop()
    gc.enable()
    set_shared_limit(0)
    set_shared_limit(SHARED_BYTES)


def _talk(number: int, words: int) -> Talk:
    """Like no other one."""
    return Talk(
        system=["Be brief."],
        rounds=[
            *(_round(f"word-{number}-{turn} " * words, 10 * number + turn) for turn in range(_ROUNDS)),
            _LAST,
        ],
        tools=[("find", "", {"type": "object", "properties": {"n": {"type": "integer"}}})],
        choice="auto",
        one_call=False,
        max_tokens=100,
        temperature=None,
        stop=[],
        effort="",
        output=None,
        call_ids=True,
        nested=False,
    )


def _round(text: str, number: int) -> Round:
    call = Call(number, "find", {"n": number, "why": text})
    result = Result(call, f"found {text}", has_image=False, failed=False)
    return Round([f"ask {text}"], [Step(f"look {text}", [call], [result], "")], f"there: {text}")


def _bodies(tongue: str, words: int) -> Iterator[bytes]:
    taken = 0
    for number in itertools.count():
        body = speak(tongue, _talk(number, words))
        taken += len(body)
        if taken > _TIMES * _LIMIT_BYTES:
            return
        yield body


def _take(tongue: str, body: bytes) -> None:
    exchange = Exchange(_MADE.get(tongue) or CLIENTS[tongue], new_id=lambda: "0" * 16, scope="me")
    exchange.decode(body)
    exchange.estimate()
    exchange.encode(_TARGET, {})


@pytest.mark.parametrize("tongue", TONGUES)
def test_of_conversations_that_are_over_nothing_stays_that_is_not_weighed(tongue: str) -> None:
    """What is kept of the first message leads to all others, and must be gone with them."""
    talks = [_talk(number, 80) for number in range(_CONVERSATIONS)]

    def play(some: list[Talk]) -> None:
        for number, talk in enumerate(some):
            small = _round(
                f"task {number} of {len(some)} " * 20, 10**6
            )  # the beginning weighs nothing beside the rest
            rounds = [small, *talk.rounds[:-1]]
            for turn in range(1, len(rounds) + 1):
                _take(tongue, speak(tongue, msgspec.structs.replace(talk, rounds=[*rounds[:turn], _LAST])))

    play(talks[:5])
    set_shared_limit(0)
    set_shared_limit(_LIMIT_BYTES)
    tracemalloc.start()
    play(talks[5:])
    held, _ = tracemalloc.get_traced_memory()
    assert held < 1.5 * _LIMIT_BYTES, f"{held / _LIMIT_BYTES:.2f} of the limit"


@pytest.mark.parametrize("words", [1, 40])
@pytest.mark.parametrize("tongue", TONGUES)
def test_a_full_cache_holds_no_more_than_it_weighs(tongue: str, words: int) -> None:
    bodies = [*_bodies(tongue, words)]

    def take(some: list[bytes]) -> None:
        for body in some:
            _take(tongue, body)

    take(bodies[:20])  # what comes once is there
    set_shared_limit(0)
    set_shared_limit(_LIMIT_BYTES)
    tracemalloc.start()
    take(bodies[20:])
    held, _ = tracemalloc.get_traced_memory()
    told = f"{held / _LIMIT_BYTES:.2f} of the limit, {shared_bytes() / _LIMIT_BYTES:.2f} weighed"
    assert held < _LIMIT_BYTES, told
    assert shared_bytes() > _LIMIT_BYTES / 2, told
