"""Pydantic AI's five ways to the gateway: tools with nested models, retries, typed results; run and streamed."""

from __future__ import annotations

import pytest

from tests.e2e.clients import INSTALL_S
from tests.e2e.fake_google import Google
from tests.e2e.python_programs import install_packages, run_program
from tests.e2e.recording_proxy import Tap

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]

#: This google-genai sends two User-Agent headers.
PACKAGES = ("pydantic-ai-slim[anthropic,openai,google]==2.62.0", "google-genai==2.34.0")
BEDROCK = ("pydantic-ai-slim[bedrock]==2.62.0",)

PROGRAM = '''
import asyncio
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry

MODEL = "gemini-3.8-flash"

def connect(protocol):
    if protocol == "bedrock":
        import boto3
        from botocore.config import Config
        from pydantic_ai.models.bedrock import BedrockConverseModel
        from pydantic_ai.providers.bedrock import BedrockProvider
        client = boto3.client("bedrock-runtime", endpoint_url=BASE, region_name="us-east-1",
                              aws_access_key_id="gateway", aws_secret_access_key=KEY,
                              config=Config(retries={"total_max_attempts": 1}))
        return BedrockConverseModel("us.anthropic.claude-sonnet-4-5-20250929-v1:0",
                                    provider=BedrockProvider(bedrock_client=client))
    if protocol == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider
        return AnthropicModel(MODEL, provider=AnthropicProvider(base_url=BASE, api_key=KEY))
    if protocol == "gemini":
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider
        return GoogleModel(MODEL, provider=GoogleProvider(base_url=BASE, api_key=KEY))
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider
    kind = OpenAIChatModel if protocol == "chat" else OpenAIResponsesModel
    return kind(MODEL, provider=OpenAIProvider(base_url=BASE + "/v1", api_key=KEY))

class Place(BaseModel):
    city: str
    tags: dict[str, int] = {}

class Event(BaseModel):
    name: str
    place: Place

model, ran = connect(sys.argv[1]), []
agent = Agent(model, instructions="Be brief.")

@agent.tool_plain(retries=2)
def weather(place: Place) -> str:
    """The weather of a place."""
    ran.append(place.city)
    if place.city == "nowhere":
        raise ModelRetry("no such city")
    return f"sun over {place.city}"

async def main():
    plan = " then ".join([
        f'{use("weather", place={"city": "Oslo", "tags": {"a": 1}})} and {use("weather", place={"city": "Rome"})}',
        use("weather", place={"city": "nowhere"})])
    result = await agent.run(plan)
    report("run", [sorted(ran), result.output, result.usage.total_tokens > 0])
    ran.clear()
    async with agent.run_stream(plan) as stream:
        report("streamed", [sorted(ran), await stream.get_output()])
    again = await agent.run(use("weather", place={"city": "Bern"}), message_history=result.all_messages())
    report("history", again.output)
    typed = Agent(model, output_type=Event)
    event = (await typed.run(use("final_result", name="x", place={"city": "Oslo"}))).output
    report("typed", event.model_dump())

asyncio.run(main())
'''


@pytest.mark.parametrize("protocol", ["anthropic", "chat", "responses", "gemini", "bedrock"])
def test_tools_retries_and_typed_results(tap: Tap, google: Google, protocol: str) -> None:
    bedrock = protocol == "bedrock"
    python = install_packages(
        *(("pydantic-ai-bedrock-2.62.0", BEDROCK) if bedrock else ("pydantic-ai-2.62.0", PACKAGES))
    )
    saw = run_program(python, PROGRAM, tap.url, protocol)
    cities, said, counted = saw["run"]
    assert cities == ["Oslo", "Rome", "nowhere"]
    assert [word in said for word in ("sun over Oslo", "sun over Rome", "no such city")] == [True] * 3
    assert counted
    assert saw["streamed"] == [cities, said]
    assert "sun over Bern" in saw["history"]
    assert saw["typed"] == {"name": "x", "place": {"city": "Oslo", "tags": {}}}
    assert not tap.refused(), "\n".join(tap.refused())
    assert google.sentinels() == 0
