"""Amazon's own SDK for Python with the gateway's key as its secret: signed, both turns, on the strict Google.

What Converse can say beyond that: tests/oracle/test_bedrock_gateway.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any

import pytest
from botocore.exceptions import ClientError, EventStreamError

from tests.e2e.directives import plan, together, use
from tests.e2e.fake_google import Google
from tests.e2e.gateway import GATEWAY_KEY, Gateway
from tests.e2e.sample_files import make_png
from tests.oracle.fake_boto3 import fold, online

Json = dict[str, Any]

MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
ARN = f"arn:aws:bedrock:us-east-1:123456789012:inference-profile/{MODEL}"
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = {
    "tools": [{"toolSpec": {"name": "weather", "description": "The weather", "inputSchema": {"json": CITY}}}]
}
PLAN = plan(
    together(use("weather", {"city": "Oslo"}), use("weather", {"city": "Rome"})),
    use("weather", {"city": "nowhere"}),
)
SAID = (
    'weather returned: sun over Oslo\nweather returned: {"sky":"sun over Rome"}\nweather failed: no such city'
)
_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")

streams = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def connect(gateway: Gateway, secret: str = GATEWAY_KEY) -> Any:
    return online(gateway.url, secrets={"aws_access_key_id": "gateway", "aws_secret_access_key": secret})


@pytest.fixture
def boto(gateway: Gateway) -> Iterator[Any]:
    client = connect(gateway)
    yield client
    client.close()


def ask(client: Any, stream: bool, **request: Any) -> Json:
    if not stream:
        return dict(client.converse(modelId=MODEL, **request))
    with closing(client.converse_stream(modelId=MODEL, **request)["stream"]) as events:
        answer = fold(list(events))
    for call in calls_of(answer):
        call["input"] = json.loads(call["input"])
    return answer


def converse(
    client: Any, stream: bool, run: Callable[[Json], Json], prompt: str, **request: Any
) -> list[Json]:
    """Every answer until one calls no tool."""
    messages, answers = [user({"text": prompt})], []
    while True:
        answers.append(ask(client, stream, messages=messages, toolConfig=TOOLS, **request))
        calls = calls_of(answers[-1])
        if not calls:
            return answers
        messages += [answers[-1]["output"]["message"], user(*map(run, calls))]


def user(*content: Mapping[str, Any]) -> Json:
    return {"role": "user", "content": list(content)}


def calls_of(answer: Json) -> list[Json]:
    return [block["toolUse"] for block in answer["output"]["message"]["content"] if "toolUse" in block]


def text_of(answer: Json) -> str:
    return "".join(block.get("text", "") for block in answer["output"]["message"]["content"])


def weather(call: Json) -> Json:
    city = call["input"]["city"]
    said = {"json": {"sky": f"sun over {city}"}} if city == "Rome" else {"text": f"sun over {city}"}
    result = {"toolUseId": call["toolUseId"], "content": [said], "status": "success"}
    if city == "nowhere":
        result |= {"content": [{"text": "no such city"}], "status": "error"}
    return {"toolResult": result}


@streams
def test_tools_together_one_after_another_and_failing(boto: Any, google: Google, stream: bool) -> None:
    answers = converse(boto, stream, weather, PLAN, system=[{"text": "Be brief."}])
    cities = [[call["input"]["city"] for call in calls_of(answer)] for answer in answers]
    assert cities == [["Oslo", "Rome"], ["nowhere"], []]
    assert [answer["stopReason"] for answer in answers] == ["tool_use", "tool_use", "end_turn"]
    assert text_of(answers[-1]) == SAID
    ids = [call["toolUseId"] for answer in answers for call in calls_of(answer)]
    assert len(set(ids)) == 3
    assert all(_CALL_ID.fullmatch(one) for one in ids)
    for answer in answers:
        usage = answer["usage"]
        assert usage["inputTokens"] > 0
        assert usage["outputTokens"] > 0
        assert usage["totalTokens"] >= usage["inputTokens"] + usage["outputTokens"]
        assert answer["metrics"]["latencyMs"] >= 0
    assert google.sentinels() == 0


@streams
def test_thinking_is_shown_signed_and_taken_back(boto: Any, google: Google, stream: bool) -> None:
    prompt = "think Easy. then " + use("weather", {"city": "Oslo"})
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 2048}}
    first, last = converse(boto, stream, weather, prompt, additionalModelRequestFields=thinking)
    thought, call = first["output"]["message"]["content"]
    assert "Easy" in thought["reasoningContent"]["reasoningText"]["text"]
    assert thought["reasoningContent"]["reasoningText"]["signature"]
    assert call["toolUse"]["name"] == "weather"
    assert text_of(last) == "weather returned: sun over Oslo"
    assert google.sentinels() == 0


@streams
def test_without_thinking_the_signature_travels_by_the_id(boto: Any, google: Google, stream: bool) -> None:
    first, last = converse(boto, stream, weather, use("weather", {"city": "Oslo"}))
    assert [list(block) for block in first["output"]["message"]["content"]] == [["toolUse"]]
    assert text_of(last) == "weather returned: sun over Oslo"
    assert google.sentinels() == 0


def test_a_picture_as_the_result_of_a_tool(boto: Any, google: Google) -> None:
    picture = {"image": {"format": "png", "source": {"bytes": make_png(width=8, height=8)}}}

    def look(call: Json) -> Json:
        content = [{"text": "here it is"}, picture]
        return {"toolResult": {"toolUseId": call["toolUseId"], "content": content}}

    _, last = converse(boto, False, look, use("weather", {"city": "Oslo"}))
    assert "here it is" in text_of(last)
    assert "image/png" in str(google.requests()[-1]["contents"])
    assert google.sentinels() == 0


@pytest.mark.parametrize("model", [ARN, "a model/with ~ (odd) letters ä", "x/converse/y"])
def test_any_letters_of_a_models_name_can_be_signed(boto: Any, google: Google, model: str) -> None:
    """Percent-encoded in the address, slashes too, and once more in what is signed."""
    asked = [user({"text": "say hello"})]
    assert text_of(dict(boto.converse(modelId=model, messages=asked))) == "hello"
    with closing(boto.converse_stream(modelId=model, messages=asked)["stream"]) as events:
        assert text_of(fold(list(events))) == "hello"


def test_tokens_are_counted(boto: Any, google: Google) -> None:
    asked = {"messages": [user({"text": "Hello there."})], "toolConfig": TOOLS}
    assert boto.count_tokens(modelId=MODEL, input={"converse": asked})["inputTokens"] > 0


@streams
def test_a_wrong_secret_is_refused(gateway: Gateway, stream: bool) -> None:
    stranger = connect(gateway, "not-the-key-000000000")
    with pytest.raises(ClientError) as caught:
        ask(stranger, stream, messages=[user({"text": "say hello"})])
    stranger.close()
    assert caught.value.response["Error"]["Code"] == "AccessDeniedException"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


@streams
def test_a_prompt_that_is_too_long(boto: Any, google: Google, stream: bool) -> None:
    google.overflow_next()
    with pytest.raises(ClientError) as caught:
        ask(boto, stream, messages=[user({"text": "say hello"})], toolConfig=TOOLS)
    error = caught.value.response
    assert (error["Error"]["Code"], error["ResponseMetadata"]["HTTPStatusCode"]) == (
        "ValidationException",
        400,
    )
    assert "prompt is too long" in error["Error"]["Message"]


def test_an_answer_that_breaks_off_is_an_error(breaking_gateway: Gateway) -> None:
    client = connect(breaking_gateway)
    with pytest.raises(EventStreamError, match=r"serviceUnavailableException.* broke"):
        ask(client, True, messages=[user({"text": "Tell me a story."})])
    client.close()
