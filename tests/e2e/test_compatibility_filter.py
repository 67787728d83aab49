"""What Google takes it still takes when the gateway has tools of its own for a request; judged by the emulator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.e2e.directives import use
from tests.e2e.fake_google import KEY, Google, emulated_google
from tests.e2e.gateway import GATEWAY_KEY, Gateway

Json = dict[str, Any]

HEADERS = {"authorization": f"Bearer {GATEWAY_KEY}", "x-dragoman-session": "s"}
OLD, NEW = "gemini-2.5-flash", "gemini-3.8-flash"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER = {"name": "weather", "description": "The weather", "parametersJsonSchema": SCHEMA}
IN_JSON: Json = {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}}
FORCED = {"functionCallingConfig": {"mode": "ANY"}}
BUILT_IN = ("googleSearch", "urlContext", "codeExecution", "googleMaps")


@pytest.fixture(scope="module")
def shared() -> Iterator[Google]:
    with emulated_google() as google:
        yield google


@pytest.fixture(scope="module", params=["gemini", "vertex"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, shared: Google, kind: str) -> Iterator[Gateway]:
    gateway = Gateway(tmp_path_factory.mktemp(kind) / "home", shared.url, UPSTREAM_KIND=kind)
    gateway.start()
    yield gateway
    gateway.stop()
    assert "Traceback" not in gateway.log()


@pytest.fixture
def google(shared: Google, house: Gateway) -> Iterator[Google]:
    set_tools(house)
    shared.forget()
    yield shared
    requests.delete(f"{house.url}/v1/sessions/s/tools", headers=HEADERS, timeout=30)  # calls may wait
    assert not shared.refusals(), "\n".join(shared.refusals())


def set_tools(gateway: Gateway, **more: Any) -> None:
    body = {"tools": [WEATHER], **more}
    url = f"{gateway.url}/v1/sessions/s/tools"
    assert requests.put(url, json=body, headers=HEADERS, timeout=30).status_code == 200


def ask(gateway: Gateway, path: str, body: Json) -> requests.Response:
    answer = requests.post(gateway.url + path, json=body, headers=HEADERS, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer


def native(gateway: Gateway, model: str, words: str = "say Yes.", **more: Any) -> requests.Response:
    body = {"contents": [{"role": "user", "parts": [{"text": words}]}], **more}
    return ask(gateway, f"/v1beta/models/{model}:generateContent", body)


def tools_of(google: Google) -> list[str]:
    (request,) = google.requests()
    return [kind for tool in request.get("tools", ()) for kind in tool]


@pytest.mark.parametrize("model", [OLD, NEW])
@pytest.mark.parametrize("tool", BUILT_IN)
def test_googles_own_tools_keep_working_and_ours_come_where_both_can(
    house: Gateway, google: Google, kind: str, model: str, tool: str
) -> None:
    answer = native(house, model, tools=[{tool: {}}])
    both = model == NEW and kind == "gemini"
    assert tools_of(google) == (["functionDeclarations", tool] if both else [tool])
    assert answer.headers["x-dragoman-notes"] == ("0" if both else "1")


def test_both_are_used_in_one_answer(house: Gateway, google: Google, kind: str) -> None:
    answer = native(
        house, NEW, f"search the web, then {use('weather', {'city': 'Oslo'})}", tools=[{"googleSearch": {}}]
    )
    assert ("[waiting for weather" in answer.text) == (kind == "gemini")


def test_a_session_that_takes_the_clients_tools_away_has_its_own(house: Gateway, google: Google) -> None:
    set_tools(house, keep_client_tools=False)
    native(house, OLD, tools=[{"googleSearch": {}}])
    assert tools_of(google) == ["functionDeclarations"]


@pytest.mark.parametrize("model", [OLD, NEW])
@pytest.mark.parametrize("forced", [False, True])
@pytest.mark.parametrize("dialect", ["gemini", "openai_chat", "openai_responses"])
def test_json_that_google_guarantees_stays_guaranteed(
    house: Gateway, google: Google, model: str, forced: bool, dialect: str
) -> None:
    set_tools(house, **({"toolConfig": FORCED} if forced else {}))
    wanted = {"name": "a", "schema": SCHEMA}
    if dialect == "gemini":
        native(house, model, **IN_JSON)
    elif dialect == "openai_chat":
        words = {"role": "user", "content": "say Yes."}
        shape = {"type": "json_schema", "json_schema": wanted}
        ask(house, "/v1/chat/completions", {"model": model, "messages": [words], "response_format": shape})
    else:
        shape = {"type": "json_schema", **wanted}
        ask(house, "/v1/responses", {"model": model, "input": "say Yes.", "text": {"format": shape}})
    (request,) = google.requests()
    assert request["generationConfig"]["responseMimeType"] == "application/json"
    assert tools_of(google) == ([] if model == OLD else ["functionDeclarations"])


@pytest.mark.parametrize("kind", ["gemini"], indirect=True)
@pytest.mark.parametrize("model", [OLD, NEW])
def test_a_cache_brings_its_own_tools(house: Gateway, google: Google, model: str) -> None:
    long = {"role": "user", "parts": [{"text": "long " * 9000}]}
    kept: Json = {"model": f"models/{model}", "contents": [long]}
    made = requests.post(
        f"{google.url}/v1beta/cachedContents", json=kept, headers={"x-goog-api-key": KEY}, timeout=30
    )
    native(house, model, cachedContent=made.json()["name"])
    assert tools_of(google) == []
