"""OpenAI's own SDK: Chat and Responses, whole and streamed, its helpers, and the state the gateway keeps."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.clients import INSTALL_S
from tests.e2e.fake_google import Google
from tests.e2e.python_programs import install_packages, run_program
from tests.e2e.recording_proxy import Tap

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]

PACKAGES = ("openai==3.49.0", "openai-agents==0.24.0")

_SHARED = """
from openai import OpenAI, AuthenticationError, BadRequestError, NotFoundError, pydantic_function_tool
from pydantic import BaseModel
client = OpenAI(base_url=BASE + "/v1", api_key=KEY, max_retries=0)
MODEL = "gemini-3.8-flash"
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
        "additionalProperties": False}
PLAN = f'{use("weather", city="Oslo")} and {use("weather", city="Rome")} then {use("weather", city="nowhere")}'

class Event(BaseModel):
    name: str
    day: int
    guests: list[str]

def weather(arguments):
    city = json.loads(arguments)["city"]
    return "error: no such city" if city == "nowhere" else f"sun over {city}"
"""

CHAT = (
    _SHARED
    + """
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": CITY, "strict": True}}]

def ask(messages, stream):
    if not stream:
        return client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS).choices[0]
    with client.chat.completions.stream(model=MODEL, messages=messages, tools=TOOLS,
                                        stream_options={"include_usage": True}) as events:
        for event in events:
            pass
        final = events.get_final_completion()
        assert final.usage.total_tokens > 0
        return final.choices[0]

for stream in (False, True):
    messages, calls = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": PLAN}], []
    while True:
        choice = ask(messages, stream)
        if choice.finish_reason != "tool_calls":
            break
        calls.append([call.function.name for call in choice.message.tool_calls])
        messages.append(choice.message)
        messages += [{"role": "tool", "tool_call_id": call.id, "content": weather(call.function.arguments)}
                     for call in choice.message.tool_calls]
    report("stream" if stream else "whole", [calls, choice.finish_reason, choice.message.content])

parsed = client.chat.completions.parse(
    model=MODEL, messages=[{"role": "user", "content": "An event, please"}], response_format=Event)
report("parsed", type(parsed.choices[0].message.parsed).__name__)
tool = client.chat.completions.parse(
    model=MODEL, messages=[{"role": "user", "content": use("Event", name="x", day=3, guests=["a"])}],
    tools=[pydantic_function_tool(Event)])
report("parsed_call", tool.choices[0].message.tool_calls[0].function.parsed_arguments.model_dump())
forced = client.chat.completions.create(
    model=MODEL, messages=[{"role": "user", "content": "hello"}], tools=TOOLS,
    tool_choice={"type": "function", "function": {"name": "weather"}})
report("forced", [forced.choices[0].finish_reason, forced.choices[0].message.tool_calls[0].function.name])
report("models", "gemini-3.8-flash" in [model.id for model in client.models.list()])
try:
    client.chat.completions.create(model=MODEL, messages=[{"role": "nobody", "content": "x"}])
except BadRequestError as error:
    report("bad", [error.status_code, bool(error.message)])
try:
    OpenAI(base_url=BASE + "/v1", api_key="wrong", max_retries=0).models.list()
except AuthenticationError as error:
    report("stranger", error.status_code)
"""
)

RESPONSES = (
    _SHARED
    + """
TOOLS = [{"type": "function", "name": "weather", "parameters": CITY, "strict": True}]

def ask(stream, **request):
    if not stream:
        return client.responses.create(model=MODEL, tools=TOOLS, **request)
    with client.responses.stream(model=MODEL, tools=TOOLS, **request) as events:
        for event in events:
            pass
        return events.get_final_response()

def results(response):
    return [{"type": "function_call_output", "call_id": item.call_id, "output": weather(item.arguments)}
            for item in response.output if item.type == "function_call"]

for stream in (False, True):
    # Only what is new: the gateway has the rest.
    response, calls = ask(stream, input=PLAN, instructions="Be brief."), []
    while outputs := results(response):
        calls.append(len(outputs))
        response = ask(stream, input=outputs, previous_response_id=response.id)
    report("stream" if stream else "whole", [calls, response.status, response.output_text])

    # Everything each time, nothing kept there.
    items, calls = [{"role": "user", "content": PLAN}], []
    keep = {"store": False, "include": ["reasoning.encrypted_content"], "reasoning": {"summary": "auto"}}
    response = ask(stream, input=items, **keep)
    while outputs := results(response):
        calls.append(len(outputs))
        items += [item.model_dump(exclude_none=True, exclude={"status", "parsed_arguments"})
                  for item in response.output] + outputs
        response = ask(stream, input=items, **keep)
    report("stream_alone" if stream else "whole_alone", [calls, response.status, response.output_text])

parsed = client.responses.parse(model=MODEL, input="An event, please", text_format=Event)
report("parsed", type(parsed.output_parsed).__name__)
first = client.responses.create(model=MODEL, input="say hello")
again = client.responses.retrieve(first.id)
report("kept", [again.output_text, [item.role for item in client.responses.input_items.list(first.id)]])
client.responses.delete(first.id)
try:
    client.responses.retrieve(first.id)
except NotFoundError as error:
    report("deleted", error.status_code)
report("counted", client.responses.input_tokens.count(model=MODEL, input="say hello").input_tokens > 0)
conversation = client.conversations.create()
client.responses.create(model=MODEL, input="say first", conversation=conversation.id)
last = client.responses.create(model=MODEL, input="say second", conversation=conversation.id)
report("conversation", [last.output_text, last.conversation.id == conversation.id])
try:
    client.responses.create(model=MODEL, input="x", previous_response_id="resp_nowhere")
except (BadRequestError, NotFoundError) as error:
    report("unknown", error.status_code)
"""
)

SAID = (
    "weather returned: sun over Oslo\nweather returned: sun over Rome\nweather returned: error: no such city"
)


def play(program: str, tap: Tap) -> dict[str, Any]:
    return run_program(install_packages("openai-3.49.0", PACKAGES), program, tap.url)


def test_chat_completions(tap: Tap, google: Google) -> None:
    saw = play(CHAT, tap)
    assert saw["whole"] == saw["stream"] == [[["weather", "weather"], ["weather"]], "stop", SAID]
    assert saw["parsed"] == "Event"
    assert saw["parsed_call"] == {"name": "x", "day": 3, "guests": ["a"]}
    assert saw["forced"] == ["tool_calls", "weather"]
    assert saw["models"] is True
    assert (saw["bad"], saw["stranger"]) == ([400, True], 401)
    assert len(tap.refused()) == 2
    assert google.sentinels() == 0


def test_responses(tap: Tap, google: Google) -> None:
    saw = play(RESPONSES, tap)
    for way in ("whole", "stream", "whole_alone", "stream_alone"):
        assert saw[way] == [[2, 1], "completed", SAID], way
    assert saw["parsed"] == "Event"
    assert saw["kept"] == ["hello", ["user"]]
    assert saw["deleted"] == 404
    assert saw["counted"] is True
    assert saw["conversation"] == ["second", True]
    assert saw["unknown"] in (400, 404)
    assert len(tap.refused()) == 2
    assert google.sentinels() == 0
