"""Conditions hold or say in words why they do not."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import msgspec
import pytest

from dragoman.emulator.director import ApiRequest
from dragoman.emulator.routes import find_route
from dragoman.emulator.script.match import RequestView, differences
from dragoman.emulator.script.model import Conditions
from dragoman.emulator.validate import parse_request
from tests.unit.emulator.builders import Json, function_responses, model_calls, talk, user
from tests.unit.emulator.script.scripted_service import WEATHER

PICTURE = base64.b64encode(b"\xfb\xff picture").decode()
REQUEST = talk(
    user("What is the weather in Paris?"),
    model_calls("get_weather"),
    function_responses("get_weather", output="sunny"),
    tools=WEATHER,
    system_instruction={"parts": [{"text": "Be polite."}]},
    generation_config={
        "temperature": 0,
        "stop_sequences": ["a", "b", "c"],
        "thinking_config": {"include_thoughts": True},
    },
)


def view(body: Json = REQUEST, *, method: str = "generateContent", number: int = 1) -> RequestView:
    route = find_route("POST", f"/v1beta/models/gemini-3.8-flash:{method}")
    assert route is not None
    message = "CountTokensRequest" if method == "countTokens" else "GenerateContentRequest"
    raw = msgspec.json.encode(body)
    request = parse_request(raw, route.backend, message)
    return RequestView(
        ApiRequest(route=route, request=request, raw_body=raw, headers={"x-trace": "abc", "x-key": "secret"}),
        number,
    )


def unlike(**when: Any) -> list[str]:
    return differences(msgspec.convert(when, Conditions), view())


@pytest.mark.parametrize(
    "when",
    [
        {},
        {"says": "weather in (Paris|London)"},
        {"says": {"is": "What is the weather in Paris?"}},
        {"says": {"starts": "What", "sha256": hashlib.sha256(b"What is the weather in Paris?").hexdigest()}},
        {"model": "gemini-3*"},
        {"method": "generate"},
        {"declares": "get_*"},
        {"declares": ["get_weather"]},
        {"answers": "get_weather"},
        {"answers": ["get_*"]},
        {"results": "sunny"},
        {"results": {"is": '{"output":"sunny"}'}},
        {"system": "polite"},
        {"request": 1},
        {"header": {"X-Trace": "^a"}},
        {"contains": {"generationConfig": {"temperature": 0.0}}},
        {"contains": {"generation_config": {"stop_sequences": ["a", "c"]}}},
        {
            "contains": {
                "contents": [{"parts": [{"text": "What is the weather in Paris?"}]}, {"role": "user"}]
            }
        },
        {"any": [{"says": "nothing"}, {"says": "weather"}]},
        {"not": {"says": "weather", "model": "gemini-2*"}},
    ],
)
def test_a_condition_that_holds_says_nothing(when: Json) -> None:
    assert unlike(**when) == []


@pytest.mark.parametrize(
    ("when", "line"),
    [
        ({"says": "rain"}, "says: expected /rain/, got 'What is the weather in Paris?'"),
        ({"says": {"is": "What"}}, "says: expected 'What', got 'What is the weather in Paris?'"),
        (
            {"says": {"starts": "is", "sha256": "0"}},
            "says: expected a text that starts 'is' with SHA-256 0, got ",
        ),
        ({"says": {"starts": "What", "sha256": "0"}}, "with SHA-256 0, got "),
        ({"model": "gemini-2*"}, "model: expected gemini-2*, got gemini-3.8-flash"),
        ({"method": "stream"}, "method: expected stream, got generate"),
        ({"declares": ["get_weather", "f"]}, "declares: expected f, got get_weather"),
        ({"answers": []}, "answers: expected no function results, got get_weather"),
        ({"answers": ["get_weather", "f"]}, "answers: expected get_weather, f, got get_weather"),
        ({"results": "rain"}, """results: expected /rain/, got '{"output":"sunny"}'"""),
        ({"system": "rude"}, "system: expected /rude/, got 'Be polite.'"),
        ({"request": 2}, "request: expected number 2, got number 1"),
        ({"header": {"x-none": "a"}}, "header: expected x-none to be /a/, got no such header"),
        ({"header": {"x-key": "a"}}, "header: expected x-key to be /a/, got another value"),
        (
            {"contains": {"generationConfig": {"topK": 1}}},
            "contains: expected generationConfig.topK to be 1, got nothing",
        ),
        (
            {"contains": {"generationConfig": {"temperature": 1}}},
            "generationConfig.temperature to be 1, got 0",
        ),
        ({"contains": {"generationConfig": {"temperature": False}}}, "to be false, got 0"),
        ({"contains": {"generationConfig": 3}}, "contains: expected generationConfig to be 3, got {"),
        (
            {"contains": {"generationConfig": {"stopSequences": ["c", "a"]}}},
            'generationConfig.stopSequences after that to have "a", got ["a","b","c"]',
        ),
        ({"any": [{"says": "x"}, {"model": "y"}]}, "any: says: expected /x/, got "),
        ({"not": {"says": "weather"}}, "not: expected none of {"),
    ],
)
def test_a_condition_that_does_not_hold_says_what_came(when: Json, line: str) -> None:
    found = unlike(**when)
    assert len(found) == 1
    assert line in found[0], found[0]


def test_all_differences_are_told() -> None:
    assert len(unlike(says="x", model="y", system="z")) == 3


def test_bytes_are_compared_in_either_alphabet() -> None:
    picture = {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": PICTURE}}]}
    seen = view(talk(picture))
    for spelling in (PICTURE, PICTURE.replace("+", "-").replace("/", "_").rstrip("=")):
        wanted = {"contains": {"contents": [{"parts": [{"inline_data": {"data": spelling}}]}]}}
        assert differences(msgspec.convert(wanted, Conditions), seen) == []
    other = {"contains": {"contents": [{"parts": [{"inlineData": {"data": "AAAA"}}]}]}}
    assert differences(msgspec.convert(other, Conditions), seen)


def test_counting_looks_into_the_request_that_is_counted() -> None:
    counted = view(
        {"generateContentRequest": {**talk(user("hello")), "model": "models/x"}}, method="countTokens"
    )
    assert (counted.method, counted.user_text) == ("count", "hello")


def test_several_results_are_one_list() -> None:
    seen = view(talk(user("x"), model_calls("f", "g"), function_responses("f", "g")))
    assert seen.results == '[{"output":"ok"},{"output":"ok"}]'
    assert view(talk(user("x"))).results == ""


def test_a_long_text_is_shown_short() -> None:
    seen = view(talk(user("a" * 5000)))
    assert len(differences(Conditions(says="b"), seen)[0]) < 300
