"""Google's own SDK talks to the emulator over HTTP: what it parses and sends back is the proof."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from google import genai
from google.genai import errors, types

from dragoman.emulator import create_emulator
from tests.faults.harness import serving

# google-genai 3.1 subclasses aiohttp's session, which aiohttp 3.14 discourages; it can go when the SDK stops.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")

MODEL = "gemini-3.8-flash"
MODELS = [MODEL, "gemini-3.5-flash", "gemini-2.5-flash", "gemini-4-argon"]


@pytest.fixture
async def base_url() -> AsyncIterator[str]:
    async with serving(create_emulator()) as url:
        yield url


@pytest.fixture
async def client(base_url: str) -> AsyncIterator[genai.client.AsyncClient]:
    options = types.HttpOptions(base_url=base_url)
    async with genai.Client(api_key="any", http_options=options).aio as opened:
        yield opened


def weather_tool() -> types.Tool:
    city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    weather = types.FunctionDeclaration(
        name="get_weather", description="The current weather of a city", parameters_json_schema=city
    )
    clock = types.FunctionDeclaration(name="get_time", description="What time it is")
    return types.Tool(function_declarations=[weather, clock])


def manual(**settings: Any) -> types.GenerateContentConfig:
    off = types.AutomaticFunctionCallingConfig(disable=True)
    return types.GenerateContentConfig(tools=[weather_tool()], automatic_function_calling=off, **settings)


async def test_generate(client: genai.client.AsyncClient) -> None:
    answer = await client.models.generate_content(model=MODEL, contents="say good morning")
    assert answer.text == "good morning"
    assert answer.model_version == MODEL
    assert answer.response_id
    assert answer.usage_metadata is not None
    assert answer.usage_metadata.prompt_token_count == 4


async def test_stream(client: genai.client.AsyncClient) -> None:
    words = "one two three four five six seven eight nine ten eleven twelve"
    chunks = [
        chunk
        async for chunk in await client.models.generate_content_stream(model=MODEL, contents=f"say {words}")
    ]
    assert len(chunks) > 2
    assert "".join(chunk.text or "" for chunk in chunks) == words
    candidates = chunks[-1].candidates
    assert candidates is not None
    assert candidates[0].finish_reason == types.FinishReason.STOP


@pytest.mark.parametrize("model", MODELS)
async def test_function_calling_over_several_turns(client: genai.client.AsyncClient, model: str) -> None:
    chat = client.chats.create(model=model, config=manual())
    asked = 'use get_weather with {"city":"Oslo"} and use get_time with {} then use get_weather with {"city":"Rome"}'
    first = await chat.send_message(asked)
    assert [(call.name, call.args) for call in first.function_calls or []] == [
        ("get_weather", {"city": "Oslo"}),
        ("get_time", {}),
    ]
    second = await chat.send_message([reply(call, "sunny") for call in first.function_calls or []])
    assert [(call.name, call.args) for call in second.function_calls or []] == [
        ("get_weather", {"city": "Rome"})
    ]
    last = await chat.send_message([reply(call, "rain") for call in second.function_calls or []])
    assert last.text == "get_weather returned: sunny\nget_time returned: sunny\nget_weather returned: rain"
    again = await chat.send_message("What is the weather in Paris?")
    assert [call.args for call in again.function_calls or []] == [{"city": "Paris"}]


@pytest.mark.parametrize("model", MODELS)
async def test_streamed_chat_with_calls(client: genai.client.AsyncClient, model: str) -> None:
    chat = client.chats.create(model=model, config=manual())
    chunks = [chunk async for chunk in await chat.send_message_stream("What is the weather in Oslo?")]
    calls = [call for chunk in chunks for call in chunk.function_calls or []]
    assert [call.args for call in calls] == [{"city": "Oslo"}]
    answers = [chunk.text or "" async for chunk in await chat.send_message_stream([reply(calls[0], "mild")])]
    assert "".join(answers) == "get_weather returned: mild"


def reply(call: types.FunctionCall, output: str) -> types.Part:
    response = types.FunctionResponse(id=call.id, name=call.name, response={"output": output})
    return types.Part(function_response=response)


async def test_automatic_function_calling(client: genai.client.AsyncClient) -> None:
    asked: list[str] = []

    def get_weather(city: str) -> str:
        """The current weather of a city."""
        asked.append(city)
        return f"sunny in {city}"

    config = types.GenerateContentConfig(tools=[get_weather])
    answer = await client.models.generate_content(
        model=MODEL, contents='use get_weather with {"city": "Oslo"}', config=config
    )
    assert asked == ["Oslo"]
    assert answer.text == "get_weather returned: sunny in Oslo"


async def test_forced_call_and_thoughts(client: genai.client.AsyncClient) -> None:
    forced = types.ToolConfig(
        function_calling_config=types.FunctionCallingConfig(
            mode=types.FunctionCallingConfigMode.ANY, allowed_function_names=["get_time"]
        )
    )
    thinking = types.ThinkingConfig(include_thoughts=True, thinking_level=types.ThinkingLevel.HIGH)
    config = manual(tool_config=forced, thinking_config=thinking)
    answer = await client.models.generate_content(model=MODEL, contents="think hard", config=config)
    assert [call.name for call in answer.function_calls or []] == ["get_time"]
    assert answer.parts is not None
    assert answer.parts[0].thought is True
    assert answer.usage_metadata is not None
    assert answer.usage_metadata.thoughts_token_count


async def test_json_schema_answers_parse(client: genai.client.AsyncClient) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    config = types.GenerateContentConfig(response_mime_type="application/json", response_json_schema=schema)
    answer = await client.models.generate_content(model=MODEL, contents="I am Ada", config=config)
    assert answer.parsed == {"name": "Ada"}


async def test_count_tokens(client: genai.client.AsyncClient) -> None:
    counted = await client.models.count_tokens(model=MODEL, contents="hello world!")
    assert counted.total_tokens == 3


async def test_models(client: genai.client.AsyncClient) -> None:
    names = [model.name async for model in await client.models.list()]
    assert f"models/{MODEL}" in names
    model = await client.models.get(model=MODEL)
    assert model.input_token_limit == 1_048_576


async def test_errors_arrive_as_the_sdks_own(client: genai.client.AsyncClient, base_url: str) -> None:
    with pytest.raises(errors.ClientError) as missing:
        await client.models.generate_content(model="gemini-2.0-flash", contents="x")
    assert (missing.value.code, missing.value.status) == (404, "NOT_FOUND")
    trailing = [types.Content(role="model", parts=[types.Part(text="x")])]
    with pytest.raises(errors.ClientError, match="ending with a model turn"):
        async for _ in await client.models.generate_content_stream(model=MODEL, contents=trailing):
            pass
    options = types.HttpOptions(base_url=base_url)
    async with genai.Client(api_key="invalid-key", http_options=options).aio as wrong:
        with pytest.raises(errors.ClientError, match="API key not valid"):
            await wrong.models.generate_content(model=MODEL, contents="x")
