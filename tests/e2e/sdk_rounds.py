"""A full round over real HTTP with the vendor's SDK: declaration, call, result, next call, result, text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from anthropic import Anthropic, AnthropicBedrock
from anthropic.types import Message, MessageParam, ToolParam, ToolUseBlock
from anthropic.types.beta import BetaMessage

from tests.e2e.directives import plan, use
from tests.e2e.gateway import GATEWAY_KEY, Gateway

Client = Anthropic | AnthropicBedrock
Mode = Literal["stream", "whole"]
MODEL = "claude-sonnet"  # a family, because the SDK warns of dated names
MODES: tuple[Mode, ...] = ("stream", "whole")

_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def connect(gateway: Gateway) -> Anthropic:
    """No retries: what goes wrong must be seen."""
    return Anthropic(base_url=gateway.url, auth_token=GATEWAY_KEY, api_key=None, max_retries=0)


def ask(
    client: Client, mode: Mode, messages: Sequence[MessageParam], tools: Sequence[Mapping[str, Any]]
) -> Message:
    declared = [cast("ToolParam", dict(tool)) for tool in tools]
    if mode == "whole":
        return client.messages.create(model=MODEL, max_tokens=16_000, messages=messages, tools=declared)
    with client.messages.stream(model=MODEL, max_tokens=16_000, messages=messages, tools=declared) as stream:
        return stream.get_final_message()


def text_of(message: Message | BetaMessage) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def play_round(
    client: Client,
    mode: Mode,
    tools: Sequence[Mapping[str, Any]],
    name: str,
    calls: tuple[Mapping[str, Any], Mapping[str, Any]],
    *,
    said: str = "",
) -> None:
    """Both calls come with exactly these arguments, and the text quotes both results.

    `said` is how the prompt names the tool where its own name is too long for Google.
    """
    prompt = plan(*(use(said or name, args) for args in calls))
    messages: list[MessageParam] = [{"role": "user", "content": prompt}]
    ids: set[str] = set()
    for number, args in enumerate(calls, start=1):
        answer = ask(client, mode, messages, tools)
        assert answer.stop_reason == "tool_use"
        assert answer.role == "assistant"
        (call,) = [block for block in answer.content if isinstance(block, ToolUseBlock)]
        assert call.name == name
        assert call.input == args
        assert _CALL_ID.fullmatch(call.id)
        assert call.id not in ids
        ids.add(call.id)
        result: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": call.id,
            "content": f"outcome {number} of {name[:20]}",
        }
        messages.append({"role": "assistant", "content": cast("Any", answer.content)})
        messages.append({"role": "user", "content": [cast("Any", result)]})
    answer = ask(client, mode, messages, tools)
    assert answer.stop_reason == "end_turn"
    text = text_of(answer)
    assert [f"outcome {number} of {name[:20]}" in text for number in (1, 2)] == [True, True]
    assert answer.usage.input_tokens > 0
    assert answer.usage.output_tokens > 0
