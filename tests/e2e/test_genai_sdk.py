"""Google's own Python SDK through the gateway: chats, functions it runs by itself, typed results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
from google import genai
from google.genai import errors, types
from pydantic import BaseModel

from tests.e2e.clients import INSTALL_S
from tests.e2e.directives import plan, together, use
from tests.e2e.fake_google import Google
from tests.e2e.gateway import GATEWAY_KEY, Gateway
from tests.e2e.recording_proxy import Tap
from tests.e2e.sdk_rounds import connect

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]

MODEL = "gemini-3.8-flash"


class Event(BaseModel):
    name: str
    day: int


@pytest.fixture
def client(tap: Tap) -> Iterator[genai.Client]:
    client = genai.Client(api_key=GATEWAY_KEY, http_options=types.HttpOptions(base_url=tap.url))
    yield client
    client.close()


def weather(city: str) -> str:
    """The weather of a city."""
    if city == "nowhere":
        raise ValueError("no such city")
    return f"sun over {city}"


def test_it_runs_functions_by_itself_in_a_chat(client: genai.Client, tap: Tap, google: Google) -> None:
    chat = client.chats.create(model=MODEL, config=types.GenerateContentConfig(tools=[weather]))
    steps = plan(
        together(use("weather", {"city": "Oslo"}), use("weather", {"city": "Rome"})),
        use("weather", {"city": "nowhere"}),
    )
    answer = chat.send_message(steps)
    assert answer.text is not None
    assert answer.text.startswith("weather returned: sun over Oslo\nweather returned: sun over Rome\n")
    assert "no such city" in answer.text
    streamed = "".join(
        chunk.text or "" for chunk in chat.send_message_stream(use("weather", {"city": "Bern"}))
    )
    assert streamed == "weather returned: sun over Bern"
    assert not tap.refused(), "\n".join(tap.refused())
    assert google.sentinels() == 0


def test_typed_results_counts_models_and_errors(client: genai.Client, tap: Tap) -> None:
    config = types.GenerateContentConfig(response_mime_type="application/json", response_schema=Event)
    typed = client.models.generate_content(model=MODEL, contents="An event, please", config=config)
    assert isinstance(typed.parsed, Event)
    counted = client.models.count_tokens(model=MODEL, contents="say hello")
    assert counted.total_tokens
    assert f"models/{MODEL}" in [model.name for model in client.models.list()]
    assert not tap.refused(), "\n".join(tap.refused())
    with (
        genai.Client(api_key="wrong", http_options=types.HttpOptions(base_url=tap.url)) as stranger,
        pytest.raises(errors.ClientError) as caught,
    ):
        stranger.models.generate_content(model=MODEL, contents="say hello")
    assert caught.value.code in (400, 401)
    assert "key" in str(caught.value.message)


def test_a_schema_google_refuses_costs_other_clients_nothing(own_gateway: Gateway, google: Google) -> None:
    """The older form loses what it cannot say; only the request that needs it may get it."""
    schema = types.Schema(type=types.Type.OBJECT, properties={"any": types.Schema(type=types.Type.OBJECT)})
    declared = types.FunctionDeclaration(name="odd", parameters=schema)
    config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[declared])])
    options = types.HttpOptions(base_url=own_gateway.url)
    with genai.Client(api_key=GATEWAY_KEY, http_options=options) as client:
        answer = client.models.generate_content(model=MODEL, contents="say hello", config=config)
    assert answer.text == "hello"
    tool = {"name": "other", "input_schema": {"type": "object", "properties": {"a": {"type": "string"}}}}
    with connect(own_gateway) as other:
        other.messages.create(
            model=MODEL,
            max_tokens=100,
            messages=[{"role": "user", "content": "say hello"}],
            tools=[cast("Any", tool)],
        )
    assert "parametersJsonSchema" in google.declarations()["other"]
