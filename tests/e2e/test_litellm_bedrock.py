"""LiteLLM as a client of Bedrock: its chat shape on Converse, whole and streamed."""

from __future__ import annotations

import pytest

from tests.e2e.clients import INSTALL_S
from tests.e2e.fake_google import Google
from tests.e2e.python_programs import install_packages, run_program
from tests.e2e.recording_proxy import Tap

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]

PACKAGES = ("litellm==1.106.0", "boto3==1.44.0", "mcp==2.3.0")  # it calls no tool without mcp

PROGRAM = """
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
import litellm
litellm.telemetry = False

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "The weather", "parameters": CITY}}]
PLAN = f'{use("weather", city="Oslo")} and {use("weather", city="Rome")} then {use("weather", city="nowhere")}'

def ask(messages, stream, key=KEY):
    answer = litellm.completion(
        model="bedrock/converse/us.anthropic.claude-sonnet-4-5-20250929-v1:0", messages=messages, tools=TOOLS,
        stream=stream, stream_options={"include_usage": True} if stream else None, num_retries=0,
        aws_bedrock_runtime_endpoint=BASE, aws_region_name="us-east-1",
        aws_access_key_id="gateway", aws_secret_access_key=key)
    return litellm.stream_chunk_builder(list(answer), messages=messages) if stream else answer

def weather(arguments):
    city = json.loads(arguments)["city"]
    return "error: no such city" if city == "nowhere" else f"sun over {city}"

for stream in (False, True):
    messages, calls = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": PLAN}], []
    while True:
        answer = ask(messages, stream)
        message = answer.choices[0].message
        if not message.tool_calls:
            break
        calls.append([json.loads(call.function.arguments)["city"] for call in message.tool_calls])
        messages.append(message.model_dump(exclude_none=True))
        messages += [{"role": "tool", "tool_call_id": call.id, "content": weather(call.function.arguments)}
                     for call in message.tool_calls]
    report("stream" if stream else "whole",
           [calls, message.content, answer.choices[0].finish_reason, answer.usage.total_tokens > 0])
try:
    ask([{"role": "user", "content": "say hello"}], False, "not-the-key-000000000")
except litellm.exceptions.APIError as error:
    report("stranger", [error.status_code, "AccessDenied" in str(error) or "gateway key" in str(error)])
except Exception as error:
    report("stranger", [getattr(error, "status_code", 0), str(error)[:300]])
"""

SAID = (
    "weather returned: sun over Oslo\nweather returned: sun over Rome\nweather returned: error: no such city"
)


def test_tools_whole_and_streamed(tap: Tap, google: Google) -> None:
    saw = run_program(install_packages("litellm-1.106.0", PACKAGES), PROGRAM, tap.url)
    assert saw["whole"] == saw["stream"] == [[["Oslo", "Rome"], ["nowhere"]], SAID, "stop", True]
    assert saw["stranger"][0] == 403
    assert len(tap.refused()) == 1
    assert google.sentinels() == 0
