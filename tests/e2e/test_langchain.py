"""LangChain's five ways to the gateway: bound tools by hand, its own agent, typed results; invoked and streamed."""

from __future__ import annotations

import pytest

from tests.e2e.clients import INSTALL_S
from tests.e2e.fake_google import Google
from tests.e2e.python_programs import install_packages, run_program
from tests.e2e.recording_proxy import Tap

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]

PACKAGES = (
    "langchain==1.4.7",
    "langchain-anthropic==1.7.7",
    "langchain-openai==1.7.3",
    "langchain-google-genai==4.4.2",
)
BEDROCK = ("langchain==1.4.7", "langchain-aws==1.9.1")

PROGRAM = '''
from typing import Optional
from langchain.agents import create_agent
from langchain.tools import tool
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from pydantic import BaseModel, Field

MODEL = "gemini-3.8-flash"

def connect(protocol):
    if protocol == "bedrock":
        from botocore.config import Config
        from langchain_aws import ChatBedrockConverse
        return ChatBedrockConverse(model="us.anthropic.claude-sonnet-4-5-20250929-v1:0", endpoint_url=BASE,
                                   region_name="us-east-1", aws_access_key_id="gateway",
                                   aws_secret_access_key=KEY, config=Config(retries={"total_max_attempts": 1}))
    if protocol == "anthropic":
        from langchain_anthropic import ChatAnthropic
        return ChatAnthropic(model=MODEL, base_url=BASE, api_key=KEY, max_retries=0, max_tokens=8000)
    if protocol == "gemini":
        from langchain_google_genai import ChatGoogleGenerativeAI
        return ChatGoogleGenerativeAI(model=MODEL, base_url=BASE, google_api_key=KEY, max_retries=1)
    from langchain_openai import ChatOpenAI
    return ChatOpenAI(model=MODEL, base_url=BASE + "/v1", api_key=KEY, max_retries=0, stream_usage=True,
                      use_responses_api=protocol == "responses")

class Event(BaseModel):
    """Something that takes place."""
    name: str
    day: int
    note: Optional[str] = Field(default=None, description="anything else")

@tool
def weather(city: str, days: Optional[int] = None) -> str:
    """The weather of a city."""
    return "error: no such city" if city == "nowhere" else f"sun over {city}"

model = connect(sys.argv[1])
plan = f'{use("weather", city="Oslo")} and {use("weather", city="Rome")} then {use("weather", city="nowhere")}'

def ask(bound, messages, stream):
    if not stream:
        return bound.invoke(messages)
    whole = None
    for chunk in bound.stream(messages):
        whole = chunk if whole is None else whole + chunk
    return whole

for stream in (False, True):
    bound, calls = model.bind_tools([weather]), []
    messages = [SystemMessage("Be brief."), HumanMessage(plan)]
    while True:
        answer = ask(bound, messages, stream)
        if not answer.tool_calls:
            break
        calls.append([call["args"]["city"] for call in answer.tool_calls])
        messages.append(answer)
        messages += [ToolMessage(weather.invoke(call["args"]), tool_call_id=call["id"],
                                 status="error" if call["args"]["city"] == "nowhere" else "success")
                     for call in answer.tool_calls]
    usage = answer.usage_metadata or {}
    report("stream" if stream else "whole", [calls, answer.text, usage.get("total_tokens", 0) > 0])

agent = create_agent(model, [weather])
ended = agent.invoke({"messages": [{"role": "user", "content": plan}]})
report("agent", ended["messages"][-1].text)
typed = model.with_structured_output(Event)
report("typed", type(typed.invoke(use("Event", name="x", day=3))).__name__)
'''


@pytest.mark.parametrize("protocol", ["anthropic", "chat", "responses", "gemini", "bedrock"])
def test_tools_agent_and_typed_results(tap: Tap, google: Google, protocol: str) -> None:
    bedrock = protocol == "bedrock"
    python = install_packages(
        *(("langchain-aws-1.9.1", BEDROCK) if bedrock else ("langchain-1.4.7", PACKAGES))
    )
    saw = run_program(python, PROGRAM, tap.url, protocol)
    for way in ("whole", "stream"):
        calls, said, counted = saw[way]
        assert calls == [["Oslo", "Rome"], ["nowhere"]], way
        assert said.startswith("weather returned: sun over Oslo\nweather returned: sun over Rome\nweather ")
        assert said.endswith("no such city")
        assert counted, way
    assert "sun over Rome" in saw["agent"]
    assert saw["typed"] == "Event"
    if bedrock:  # it would quietly not stream for a model it does not know
        assert {path.rpartition("/")[2] for path in tap.paths()} == {"converse", "converse-stream"}
    assert not tap.refused(), "\n".join(tap.refused())
    assert google.sentinels() == 0
