"""Amazon's agent framework Strands on Bedrock: its own loop, streamed and whole, pictures, a full context."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.e2e.clients import INSTALL_S
from tests.e2e.fake_google import Google
from tests.e2e.python_programs import install_packages, run_program
from tests.e2e.recording_proxy import Tap
from tests.e2e.sample_files import make_png

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]

PACKAGES = ("strands-agents==1.62.0",)

PROGRAM = '''
import base64
import boto3
from botocore.config import Config
from pydantic import BaseModel
from strands import Agent, tool
from strands.models import BedrockModel

os.environ |= {"AWS_ACCESS_KEY_ID": "gateway", "AWS_SECRET_ACCESS_KEY": KEY, "AWS_REGION": "us-east-1"}
ran = []

class Event(BaseModel):
    """Something that takes place."""
    name: str
    day: int

@tool
def weather(city: str) -> str:
    """The weather of a city."""
    ran.append(city)
    if city == "nowhere":
        raise ValueError("no such city")
    return f"sun over {city}"

def agent(messages=None, **settings):
    model = BedrockModel(model_id="us.anthropic.claude-gemini-3.8-flash-v1:0", endpoint_url=BASE,
                         boto_client_config=Config(retries={"total_max_attempts": 1}), **settings)
    return Agent(model=model, tools=[weather], messages=messages, callback_handler=None, system_prompt="Be brief.")

def told(result):
    return "".join(block.get("text", "") for block in result.message["content"])

plan = f'{use("weather", city="Oslo")} and {use("weather", city="Rome")} then {use("weather", city="nowhere")}'
thinking = {"thinking": {"type": "enabled", "budget_tokens": 2048}}

def tools():
    for streaming in (False, True):
        ran.clear()
        result = agent(streaming=streaming)(plan)
        report("stream" if streaming else "whole",
               [sorted(ran), told(result), result.stop_reason, result.metrics.accumulated_usage["totalTokens"] > 0])
    one = agent(additional_request_fields=thinking)
    result = one("think Easy. then " + use("weather", city="Bern"))
    kinds = [next(iter(block)) for block in one.messages[1]["content"]]
    report("thinking", [kinds, told(result)])
    report("again", told(one(use("weather", city="Oslo"))))
    picture = {"image": {"format": "png", "source": {"bytes": base64.b64decode(sys.argv[2])}}}
    report("picture", told(agent()([picture, {"text": "Hmm, what have we here?"}])))
    typed = agent()(use("Event", name="x", day=3), structured_output_model=Event)
    report("typed", typed.structured_output.model_dump())

def overflow():
    before = [{"role": role, "content": [{"text": f"say {number}"}]}
              for number in range(3) for role in ("user", "assistant")]
    one = agent(before)
    report("after", [told(one("say still here")), len(one.messages)])

def stranger():
    os.environ["AWS_SECRET_ACCESS_KEY"] = "not-the-key-000000000"
    try:
        agent()("say hello")
    except Exception as error:
        report("error", error.response["Error"]["Code"])

{"tools": tools, "overflow": overflow, "stranger": stranger}[sys.argv[1]]()
'''


def play(tap: Tap, part: str) -> dict[str, Any]:
    picture = base64.b64encode(make_png(width=8, height=8)).decode()
    return run_program(install_packages("strands-1.62.0", PACKAGES), PROGRAM, tap.url, part, picture)


def test_its_loop_runs_the_tools(tap: Tap, google: Google) -> None:
    saw = play(tap, "tools")
    for way in ("whole", "stream"):
        cities, said, stop, counted = saw[way]
        assert cities == ["Oslo", "Rome", "nowhere"], way
        assert "weather returned: sun over Oslo\nweather returned: sun over Rome\nweather failed:" in said, (
            way
        )
        assert "no such city" in said, way
        assert (stop, counted) == ("end_turn", True), way
    assert saw["thinking"] == [["reasoningContent", "toolUse"], "weather returned: sun over Bern"]
    assert saw["again"] == "weather returned: sun over Oslo"
    assert "image/png" in saw["picture"]
    assert saw["typed"] == {"name": "x", "day": 3}
    assert {path.rpartition("/")[2] for path in tap.paths()} == {"converse", "converse-stream"}
    assert not tap.refused(), "\n".join(tap.refused())
    assert google.sentinels() == 0


def test_a_full_context_makes_it_shorten_the_conversation(tap: Tap, google: Google) -> None:
    google.overflow_next()
    said, kept = play(tap, "overflow")["after"]
    assert said == "still here"
    assert kept < 8
    assert google.all_refused()
    assert len(tap.refused()) == 1


def test_a_wrong_secret_is_refused(tap: Tap) -> None:
    assert play(tap, "stranger")["error"] == "AccessDeniedException"
