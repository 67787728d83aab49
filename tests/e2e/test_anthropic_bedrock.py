"""Anthropic's SDK in Bedrock's clothes: the Messages API through InvokeModel, signed and with a bearer token.

Thinking, its own loop and its asynchronous twin: tests/oracle/test_bedrock_gateway.py.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest
from anthropic import AnthropicBedrock, APIStatusError, BadRequestError, PermissionDeniedError
from anthropic.types import MessageParam

from tests.e2e.directives import together, use
from tests.e2e.fake_google import Google
from tests.e2e.gateway import GATEWAY_KEY, Gateway
from tests.e2e.sample_files import make_png
from tests.e2e.sdk_rounds import MODES, Mode, ask, play_round, text_of

MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
ADD: dict[str, Any] = {
    "name": "add",
    "description": "Add two numbers.",
    "input_schema": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
}


def connect(gateway: Gateway, auth: str, key: str = GATEWAY_KEY) -> AnthropicBedrock:
    signed = {"aws_access_key": "gateway", "aws_secret_key": key}
    login: dict[str, Any] = {"api_key": key} if auth == "bearer" else signed
    return AnthropicBedrock(base_url=gateway.url, aws_region="us-east-1", max_retries=0, **login)


@pytest.fixture(params=["sigv4", "bearer"])
def bedrock(request: pytest.FixtureRequest, gateway: Gateway) -> Iterator[AnthropicBedrock]:
    with connect(gateway, request.param) as client:
        yield client


def user(content: Any) -> list[MessageParam]:
    return [{"role": "user", "content": content}]


@pytest.mark.parametrize("mode", MODES)
def test_one_tool_after_another(bedrock: AnthropicBedrock, google: Google, mode: Mode) -> None:
    play_round(bedrock, mode, [ADD], "add", ({"a": 1, "b": 2}, {"a": 30, "b": 4}))
    assert google.sentinels() == 0


@pytest.mark.parametrize("mode", MODES)
def test_parallel_tools_one_of_which_fails(bedrock: AnthropicBedrock, google: Google, mode: Mode) -> None:
    messages = user(together(*(use("add", {"a": number, "b": 0}) for number in range(3))))
    answer = ask(bedrock, mode, messages, [ADD])
    calls = [block for block in answer.content if block.type == "tool_use"]
    assert [call.input for call in calls] == [{"a": number, "b": 0} for number in range(3)]
    assert len({call.id for call in calls}) == 3
    results: list[Any] = [
        {"type": "tool_result", "tool_use_id": call.id, "content": f"sum {number}", "is_error": number == 1}
        for number, call in enumerate(calls)
    ]
    messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]
    answer = ask(bedrock, mode, messages, [ADD])
    assert text_of(answer) == "add returned: sum 0\nadd failed: sum 1\nadd returned: sum 2"
    assert (answer.stop_reason, answer.usage.output_tokens > 0) == ("end_turn", True)
    assert google.sentinels() == 0


def test_text_only_and_a_picture(bedrock: AnthropicBedrock) -> None:
    answer = bedrock.messages.create(model=MODEL, max_tokens=2000, messages=user("say Good evening."))
    assert text_of(answer) == "Good evening."
    picture = base64.b64encode(make_png(width=8, height=8)).decode()
    content = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": picture}},
        {"type": "text", "text": "Hmm, what have we here?"},
    ]
    answer = bedrock.messages.create(model=MODEL, max_tokens=2000, messages=user(content))
    assert "image/png" in text_of(answer)


@pytest.mark.parametrize("auth", ["sigv4", "bearer"])
def test_a_wrong_key_is_refused(gateway: Gateway, auth: str) -> None:
    with connect(gateway, auth, "not-the-key-000000000") as stranger, pytest.raises(PermissionDeniedError):
        stranger.messages.create(model=MODEL, max_tokens=10, messages=user("Hello"))


def test_a_prompt_that_is_too_long(bedrock: AnthropicBedrock, google: Google) -> None:
    google.overflow_next()
    with pytest.raises(BadRequestError, match="too long"):
        ask(bedrock, "stream", user("say hello"), [ADD])


def test_an_answer_that_breaks_off_is_an_error(breaking_gateway: Gateway) -> None:
    with connect(breaking_gateway, "sigv4") as client, pytest.raises(APIStatusError, match="broke"):
        ask(client, "stream", user("Tell me a story."), [ADD])
