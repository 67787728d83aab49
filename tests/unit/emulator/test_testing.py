"""The emulator in a program of somebody's: short forms, what came, and an end that cannot be overlooked."""

from __future__ import annotations

import os
from typing import Any

import msgspec
import pytest
import requests

import dragoman.emulator
from dragoman.emulator import running
from dragoman.emulator.script.load import ScriptError
from dragoman.emulator.testing import Emulator, RecordedRequest, ScriptNotFollowed
from tests.unit.emulator.builders import calls, function_responses, hello, talk, text, user
from tests.unit.emulator.script.scripted_service import WEATHER, user_request

PATH = "/v1beta/models/gemini-3.8-flash:generateContent"


def post(emulator: Emulator, body: Any, *, path: str = PATH) -> Any:
    headers = {"x-goog-api-key": emulator.env["GEMINI_API_KEY"]}
    return requests.post(emulator.url + path, json=body, headers=headers, timeout=30).json()


def test_short_forms_append_steps() -> None:
    with running() as emulator:
        emulator.call("get_weather", city="Paris", name="x").call_all(("f", {"a": 1}), ("g", {})).say("done")
        first = post(emulator, user_request("x", tools=WEATHER))
        assert calls(first) == [("get_weather", {"city": "Paris", "name": "x"})]
        assert calls(post(emulator, hello())) == [("f", {"a": 1}), ("g", {})]
        assert text(post(emulator, hello())) == "done"
        emulator.fail("overloaded").fail("quota_minute", 7)
        assert post(emulator, hello())["error"]["code"] == 503
        assert post(emulator, hello())["error"]["code"] == 429


def test_text_that_looks_like_yaml_is_said_as_it_is() -> None:
    with running() as emulator:
        emulator.say("a: [b\n- c").say("7")
        assert text(post(emulator, hello())) == "a: [b\n- c"
        assert text(post(emulator, hello())) == "7"


def test_a_wrong_short_form_is_refused_at_once() -> None:
    with running() as emulator:
        with pytest.raises(ScriptError, match="there is no fault 'quota_minut'; did you mean quota_minute"):
            emulator.fail("quota_minut")
        with pytest.raises(ScriptError, match="a function has a name"):
            emulator.call("")
        with pytest.raises(ScriptError, match="expected model or refuse"):
            emulator.otherwise = "nothing"  # type: ignore[assignment]


def test_a_script_that_was_not_followed_is_an_error_at_the_end() -> None:
    with pytest.raises(ScriptNotFollowed, match="step 1 was never used"), running() as emulator:
        emulator.say("never")
    with running({"steps": [{"reply": "never"}]}, check=False) as emulator:
        pass
    assert emulator.problems() == ["step 1 was never used"]
    with pytest.raises(KeyError), running({"steps": [{"reply": "never"}]}):
        raise KeyError("the program's own error is not hidden")


def test_nothing_else_may_be_asked() -> None:
    with running(check=False) as emulator:
        assert emulator.otherwise == "model"
        emulator.otherwise = "refuse"
        assert post(emulator, hello())["error"]["status"] == "FAILED_PRECONDITION"


def test_what_came_can_be_looked_at() -> None:
    with running() as emulator:
        post(
            emulator, talk(user("one"), {"role": "model", "parts": [{"text": "two"}]}, user("three", "four"))
        )
        post(emulator, {"contents": []})
        post(emulator, hello(), path=PATH.replace("generateContent", "countTokens"))
        requests.get(f"{emulator.url}/v1beta/models", timeout=30)
        requests.get(f"{emulator.url}/nothing", timeout=30)
    first = emulator.requests[0]
    assert (first.method, first.model, first.path, first.status) == (
        "generate",
        "gemini-3.8-flash",
        PATH,
        200,
    )
    assert first.json["contents"][0] == user("one") == first.contents[0]
    assert first.last_text == "three\nfour"
    assert first.headers["x-goog-api-key"] == "emulator"
    assert "emulator" not in repr(first)
    assert [(one.method, one.status) for one in emulator.requests[1:]] == [
        ("generate", 400),
        ("count", 200),
        ("list", 200),
        ("", 404),
    ]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"contents":"x"}', b'{"contents":[1,{"parts":[2]}]}', b"\xff"]
)
def test_a_body_that_is_no_request_can_be_looked_at_too(body: bytes) -> None:
    request = RecordedRequest(method="generate", model="m", path="/", status=400, headers={}, body=body)
    assert isinstance(request.json, dict)
    assert isinstance(request.contents, list)
    assert request.last_text == ""


def test_results_are_not_taken_for_words() -> None:
    body = talk(user("words"), function_responses("f"))
    request = RecordedRequest(
        method="generate", model="m", path="/", status=200, headers={}, body=_encode(body)
    )
    assert request.last_text == "words"


def _encode(body: Any) -> bytes:
    return requests.Request("POST", "http://x", json=body).prepare().body  # type: ignore[return-value]


def test_the_environment_leads_past_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "example.org")
    with running() as emulator:
        assert emulator.env["NO_PROXY"] == "127.0.0.1,example.org"
        for name in ("GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL", "GEMINI_BASE_URL"):
            assert emulator.env[name] == emulator.url
    assert "GEMINI_BASE_URL" not in os.environ


def test_the_names_of_the_package_are_what_it_says() -> None:
    assert sorted(dragoman.emulator._HOME) == sorted(dragoman.emulator.__all__)
    for name in dragoman.emulator.__all__:
        assert callable(getattr(dragoman.emulator, name))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = dragoman.emulator.nonsense


@pytest.mark.parametrize(
    "contents",
    [
        {"role": "user", "parts": [{"text": 5}]},
        [{"role": "user", "parts": {"text": "hi"}}],
        [{"role": None, "parts": [{"text": "hi"}]}],
        [{"parts": 5}],
        "hi",
    ],
)
def test_a_request_of_any_shape_can_be_looked_at(contents: object) -> None:
    """A failed test's report shows every request, the broken ones too."""
    body = msgspec.json.encode({"contents": contents})
    seen = RecordedRequest(method="generate", model="m", path="/", status=400, headers={}, body=body)
    hi = b'"hi"' in body and isinstance(contents, list)
    assert repr(seen) == f"<generate m 400 {'hi' if hi else ''!r}>"
