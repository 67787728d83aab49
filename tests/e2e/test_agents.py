"""OpenAI's agents library: tools, a failing one, a hand-over, a typed result, on Responses and on Chat."""

from __future__ import annotations

import pytest

from tests.e2e.clients import INSTALL_S
from tests.e2e.fake_google import Google
from tests.e2e.python_programs import install_packages, run_program
from tests.e2e.recording_proxy import Tap
from tests.e2e.test_openai_sdk import PACKAGES

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]

PROGRAM = '''
import asyncio
from agents import (Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, SQLiteSession,
                    function_tool, set_tracing_disabled)
from openai import AsyncOpenAI
from pydantic import BaseModel
set_tracing_disabled(True)
client = AsyncOpenAI(base_url=BASE + "/v1", api_key=KEY, max_retries=0)
kind = {"responses": OpenAIResponsesModel, "chat": OpenAIChatCompletionsModel}[sys.argv[1]]
model = kind(model="gemini-3.8-flash", openai_client=client)
ran = []

class Event(BaseModel):
    name: str
    day: int

@function_tool
def weather(city: str) -> str:
    """The weather of a city."""
    ran.append(city)
    if city == "nowhere":
        raise ValueError("no such city")
    return f"sun over {city}"

async def main():
    agent = Agent(name="helper", instructions="Be brief.", model=model, tools=[weather])
    plan = f'{use("weather", city="Oslo")} and {use("weather", city="Rome")} then {use("weather", city="nowhere")}'
    session = SQLiteSession("one")
    result = await Runner.run(agent, plan, session=session)
    report("run", [sorted(ran), result.final_output])
    result = await Runner.run(agent, use("weather", city="Bern"), session=session)
    report("session", result.final_output)
    ran.clear()
    streamed = Runner.run_streamed(agent, plan)
    kinds = {event.type async for event in streamed.stream_events()}
    report("streamed", [sorted(ran), streamed.final_output, sorted(kinds)])
    other = Agent(name="other", instructions="You are the other one.", model=model, tools=[weather])
    first = Agent(name="first", model=model, handoffs=[other])
    result = await Runner.run(first, f'{use("transfer_to_other")} then {use("weather", city="Bonn")}')
    report("handover", [result.last_agent.name, result.final_output])
    typed = Agent(name="typed", model=model, output_type=Event)
    report("typed", type((await Runner.run(typed, "An event, please")).final_output).__name__)

asyncio.run(main())
'''


@pytest.mark.parametrize("protocol", ["responses", "chat"])
def test_an_agent_works(tap: Tap, google: Google, protocol: str) -> None:
    saw = run_program(install_packages("openai-3.49.0", PACKAGES), PROGRAM, tap.url, protocol)
    cities, said = saw["run"]
    assert cities == ["Oslo", "Rome", "nowhere"]
    assert said.startswith("weather returned: sun over Oslo\nweather returned: sun over Rome\n")
    assert "An error occurred while running the tool" in said
    assert saw["session"] == "weather returned: sun over Bern"
    assert saw["streamed"][:2] == [cities, said]
    assert "raw_response_event" in saw["streamed"][2]
    assert saw["handover"][0] == "other"
    assert "sun over Bonn" in saw["handover"][1]
    assert saw["typed"] == "Event"
    assert not tap.refused(), "\n".join(tap.refused())
    assert google.sentinels() == 0
