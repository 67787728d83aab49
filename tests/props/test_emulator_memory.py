"""What the emulator remembers never changes what it says, and nobody changes what it remembers."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.emulator import parsed_request
from dragoman.emulator.parsed_request import ParsedRequest
from dragoman.emulator.routes import Backend, find_route
from dragoman.emulator.service import EmulatorService, HttpRequest
from dragoman.emulator.tokens import count_prompt
from dragoman.emulator.validate import parse_request
from dragoman.incremental.lru import LruCache
from tests.fuzz.emulator_seeds import BODIES, QUESTIONS, with_body
from tests.fuzz.mutate import mutate
from tests.unit.emulator.builders import function_responses, model_calls, model_text, talk, user

Json = dict[str, Any]

STUDIO = Backend("studio", "v1beta")
_BYTES = 1 << 25

#: Contents that make good and bad histories in most orders.
_CONTENTS = (
    user("a"),
    user("b", "c"),
    user(""),
    model_text("d"),
    model_text(""),
    model_calls("find"),
    model_calls("find", "stat", ids=True),
    model_calls("find", signature=None),
    model_calls("find", signature="AAAA"),
    function_responses("find"),
    function_responses("stat", "find", ids=("id-1", "id-0")),
    function_responses("other"),
    {"role": "tool", "parts": [{"text": "x"}]},
    {"parts": [{"text": "x"}]},
    {"role": "user", "parts": []},
    {"role": "user", "parts": [{"inlineData": {"mimeType": "image/x", "data": "AAAA"}}]},
    {"role": "user", "parts": [{"text": 1}]},
    {"role": "user", "parts": [{"functionCall": {}}], "bogus": 1},
    None,
    "words",
)
_RESTS = (*({**body, "contents": None} for body in BODIES.values()), {"bogus": 1}, {"tools": [{}]})


@pytest.fixture(autouse=True)
def fresh_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsed_request, "FRAGMENT_CACHE", LruCache(_BYTES))


def say_all(questions: Sequence[HttpRequest], max_bytes: int) -> list[tuple[int, bytes]]:
    """What one service answers to all of them, in this order."""
    parsed_request.FRAGMENT_CACHE = LruCache(max_bytes)
    service = EmulatorService("memory")
    answers = [service.handle(question) for question in questions]
    return [(answer.status, answer.body) for answer in answers]


@st.composite
def mutated(draw: st.DrawFn) -> HttpRequest:
    """A good request, or one spoilt in some way; few of each, so that they come again."""
    question = draw(st.sampled_from(QUESTIONS))
    number = draw(st.integers(-3, 40))
    return question if number < 0 else with_body(question, mutate(question.body, random.Random(number)))


@st.composite
def composed(draw: st.DrawFn) -> HttpRequest:
    """Contents and settings in any combination: pieces that passed in one company come in another."""
    question = draw(st.sampled_from(QUESTIONS))
    rest = draw(st.sampled_from(_RESTS))
    contents = draw(st.lists(st.sampled_from(_CONTENTS), max_size=6))
    body = {**rest, "contents": contents or rest.get("contents")}
    return with_body(question, json.dumps(body).encode())


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(questions=st.lists(mutated() | composed(), min_size=1, max_size=10))
def test_answers_are_the_same_with_and_without_memory(questions: list[HttpRequest]) -> None:
    without = say_all(questions, 0)
    assert say_all(questions, _BYTES) == without
    assert say_all(questions, 600) == without  # so little that pieces are forgotten and met again


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(questions=st.lists(composed(), min_size=2, max_size=6))
def test_what_was_asked_before_does_not_matter(questions: list[HttpRequest]) -> None:
    alone = [say_all([question], _BYTES)[0] for question in questions]
    assert say_all(questions, _BYTES) == alone


REFUSED_EVERY_TIME = {
    "empty content": talk(user("a"), {"role": "user", "parts": []}, user("b")),
    "role": talk(user("a"), {"role": "tool", "parts": [{"text": "x"}]}, user("b")),
    "media": talk(
        {"role": "user", "parts": [{"fileData": {"fileUri": "gs://a/b", "mimeType": "text/plain"}}]},
        user("b"),
    ),
    "reference": talk(
        user("a"),
        model_calls("f"),
        function_responses("f", x={"$ref": "nothing"}),
        model_text("b"),
        user("c"),
    ),
    "temperature": talk(user("a"), generationConfig={"temperature": 3}),
    "tool": talk(user("a"), tools=[{"functionDeclarations": [{"name": "no name"}]}]),
    "names": talk(
        user("a"), toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}}
    ),
}


@pytest.mark.parametrize("body", REFUSED_EVERY_TIME.values(), ids=REFUSED_EVERY_TIME.keys())
def test_what_was_refused_is_refused_again(body: Json) -> None:
    question = with_body(QUESTIONS[0], json.dumps(body).encode())
    first, good, second = say_all([question, QUESTIONS[0], question], _BYTES)
    assert (first[0], good[0]) == (400, 200)
    assert second == first


def remember(question: HttpRequest) -> None:
    """Read it, without doing anything with what was read."""
    route = find_route(question.method, question.path)
    assert route is not None
    counted = route.method == "countTokens"
    parse_request(question.body, route.backend, "CountTokensRequest" if counted else "GenerateContentRequest")


def test_nobody_changes_a_piece_that_others_will_read() -> None:
    for question in QUESTIONS:
        remember(question)
    kept = [piece for piece, _ in parsed_request.FRAGMENT_CACHE._entries.values()]
    before = copy.deepcopy([piece.value for piece in kept])
    assert len(kept) > len(QUESTIONS)
    for question in QUESTIONS:
        for number in range(20):
            EmulatorService("memory").handle(
                with_body(question, mutate(question.body, random.Random(number)))
            )
        EmulatorService("memory").handle(question)
    assert [piece.value for piece in kept] == before


def test_the_next_turn_shares_what_it_repeats() -> None:
    """Otherwise the cost of a turn follows the whole conversation."""
    body: Json = BODIES["long history"]
    first = parse_request(json.dumps(body).encode(), STUDIO)
    body = {**body, "contents": [*body["contents"], model_text("more"), user("again")]}
    second = parse_request(json.dumps(body).encode(), STUDIO)
    assert second["tools"] is first["tools"]
    assert all(map(lambda one, other: one is other, first["contents"], second["contents"]))


def test_changed_settings_leave_the_tools_known() -> None:
    body = BODIES["tools"]
    first = parse_request(json.dumps(body).encode(), STUDIO)
    second = parse_request(json.dumps(body | {"generationConfig": {"topK": 3}}).encode(), STUDIO)
    assert second["tools"] is first["tools"]


def test_a_count_of_a_request_shares_its_pieces() -> None:
    body = BODIES["long history"]
    request = parse_request(json.dumps(body).encode(), STUDIO)
    nested = parse_request(
        json.dumps({"generateContentRequest": body}).encode(), STUDIO, "CountTokensRequest"
    )
    assert nested["generateContentRequest"] == request
    assert nested["generateContentRequest"]["contents"][0] is request["contents"][0]


def test_what_passed_is_not_looked_at_again_but_something_always_is() -> None:
    request = parse_request(
        json.dumps(talk(user("a"), model_text("b"), user("c"), labels={"x": "y"})).encode(), STUDIO
    )
    assert isinstance(request, ParsedRequest)
    assert request.unchecked_part("rules") == request
    request.mark_checked("rules")
    assert request.unchecked_part("rules") == {"contents": request["contents"][-1:]}
    assert request.unchecked_part("other rules") == request


@pytest.mark.parametrize("name", BODIES)
def test_a_remembered_count_is_the_count(name: str) -> None:
    request = parse_request(json.dumps(BODIES[name]).encode(), STUDIO)
    plain = dict(request)
    assert isinstance(request, ParsedRequest)
    assert count_prompt(plain) == count_prompt(request) == count_prompt(request) != {}


def test_memory_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsed_request, "FRAGMENT_CACHE", LruCache(2000))
    for number in range(200):
        parse_request(json.dumps(talk(user(f"{number}" * 100))).encode(), STUDIO)
    assert len(parsed_request.FRAGMENT_CACHE) < 20
