"""What each vendor's own SDK makes of an answer, in neutral words."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
from anthropic.types import Message
from google.genai import types
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from dragoman.http.aws_eventstream import encode_event, encode_event_headers
from tests.oracle import fake_boto3
from tests.oracle.test_anthropic_sdk import ASK, answering
from tests.unit.dialects.amazonq.strict_reader import read
from tests.unit.dialects.openai_chat import stream_checks as chat
from tests.unit.dialects.openai_responses import stream_checks as responses

Json = dict[str, Any]


class Neutral(msgspec.Struct, frozen=True, kw_only=True):
    """An answer in nobody's dialect."""

    text: str
    calls: list[tuple[str, Json]]
    finish: str  # end, calls, cut, blocked
    tokens: tuple[int, int, int, int]  # asked, of these from a cache, answered, of these thoughts


_ANTHROPIC = {"end_turn": "end", "tool_use": "calls", "max_tokens": "cut", "refusal": "blocked"}
_CHAT = {"stop": "end", "tool_calls": "calls", "length": "cut", "content_filter": "blocked"}
_RESPONSES = {"max_output_tokens": "cut", "content_filter": "blocked"}
_AMAZONQ = {"END_TURN": "end", "TOOL_USE": "calls", "MAX_TOKENS": "cut", "CONTENT_FILTERED": "blocked"}
_GEMINI = {"MAX_TOKENS": "cut", "SAFETY": "blocked"}


def anthropic(data: bytes, *, stream: bool) -> Neutral:
    if stream:
        with answering(data, "text/event-stream").messages.stream(**ASK) as reading:
            message: Message = reading.get_final_message()
    else:
        message = Message.model_validate_json(data, strict=True)
    usage = message.usage
    cached = usage.cache_read_input_tokens or 0
    thoughts = usage.output_tokens_details.thinking_tokens if usage.output_tokens_details else 0
    return Neutral(
        text="".join(block.text for block in message.content if block.type == "text"),
        calls=[(block.name, dict(block.input)) for block in message.content if block.type == "tool_use"],
        finish=_ANTHROPIC[message.stop_reason or ""],
        tokens=(usage.input_tokens + cached, cached, usage.output_tokens, thoughts),
    )


def openai_chat(data: bytes, *, stream: bool) -> Neutral:
    if stream:
        completion = ChatCompletion.model_validate(chat.folded(data))
    else:
        completion = ChatCompletion.model_validate_json(data, strict=True)
    (choice,) = completion.choices
    usage = completion.usage
    assert usage is not None
    cached = usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details else 0
    details = usage.completion_tokens_details
    thoughts = details.reasoning_tokens if details else 0
    calls = [call for call in choice.message.tool_calls or [] if call.type == "function"]
    return Neutral(
        text=choice.message.content or "",
        calls=[(call.function.name, json.loads(call.function.arguments)) for call in calls],
        finish=_CHAT[choice.finish_reason],
        tokens=(usage.prompt_tokens, cached or 0, usage.completion_tokens, thoughts or 0),
    )


def openai_responses(data: bytes, *, stream: bool) -> Neutral:
    response = responses.folded(data)[1] if stream else Response.model_validate_json(data, strict=True)
    usage, why = response.usage, response.incomplete_details
    assert usage is not None
    assert (response.status == "incomplete") == (why is not None)
    calls = [item for item in response.output if item.type == "function_call"]
    done = "calls" if calls else "end"
    return Neutral(
        text=response.output_text,
        calls=[(item.name, json.loads(item.arguments)) for item in calls],
        finish=_RESPONSES[why.reason or ""] if why is not None else done,
        tokens=(
            usage.input_tokens,
            usage.input_tokens_details.cached_tokens,
            usage.output_tokens,
            usage.output_tokens_details.reasoning_tokens,
        ),
    )


def gemini(data: bytes, *, stream: bool) -> Neutral:
    frames = [frame.removeprefix(b"data: ") for frame in data.split(b"\r\n\r\n")[:-1]] if stream else [data]
    chunks = [types.GenerateContentResponse.model_validate_json(frame) for frame in frames]
    candidates = [candidate for chunk in chunks for candidate in chunk.candidates or []]
    parts = [part for item in candidates if item.content for part in item.content.parts or []]
    calls = [part.function_call for part in parts if part.function_call]
    reason = next((item.finish_reason.value for item in candidates if item.finish_reason), "SAFETY")
    usage = chunks[-1].usage_metadata
    assert usage is not None
    thoughts = usage.thoughts_token_count or 0
    asked, cached = usage.prompt_token_count or 0, usage.cached_content_token_count or 0
    return Neutral(
        text="".join(part.text for part in parts if part.text and not part.thought),
        calls=[(call.name or "", call.args or {}) for call in calls],
        finish=_GEMINI.get(reason, "calls" if calls else "end"),
        tokens=(asked, cached, (usage.candidates_token_count or 0) + thoughts, thoughts),
    )


def amazonq(data: bytes, *, stream: bool) -> Neutral:
    """As the Rust client reads it, which knows nothing of how many tokens were thoughts."""
    if not stream:
        told = [next(iter(event.items())) for event in json.loads(data)["events"]]
        data = b"".join(
            encode_event(encode_event_headers(kind), json.dumps(event).encode()) for kind, event in told
        )
    found = read(data)
    finish = _AMAZONQ[found.stop_reason]
    explained = finish in ("cut", "blocked") and found.text.startswith("(Gemini stopped with ")
    cached = found.usage["cacheReadInputTokens"]
    return Neutral(
        text="" if explained else found.text,
        calls=found.calls,
        finish=finish,
        tokens=(found.usage["uncachedInputTokens"] + cached, cached, found.usage["outputTokens"], 0),
    )


_BOTO = fake_boto3.Told()
_BEDROCK = {"end_turn": "end", "tool_use": "calls", "max_tokens": "cut", "content_filtered": "blocked"}


def bedrock(data: bytes, *, stream: bool) -> Neutral:
    answer = fake_boto3.fold(_BOTO.streamed(data)) if stream else _BOTO.whole(data)
    content = answer["output"]["message"]["content"]
    uses = [block["toolUse"] for block in content if "toolUse" in block]
    usage = answer["usage"]
    asked, cached = usage["inputTokens"], usage["cacheReadInputTokens"]
    assert usage["totalTokens"] == asked + cached + usage["outputTokens"]
    details = answer["additionalModelResponseFields"]["usage"]["output_tokens_details"]
    return Neutral(
        text="".join(block["text"] for block in content if "text" in block),
        calls=[(use["name"], json.loads(use["input"]) if stream else use["input"]) for use in uses],
        finish=_BEDROCK[answer["stopReason"]],
        tokens=(asked + cached, cached, usage["outputTokens"], details["thinking_tokens"]),
    )


FOLDS: dict[str, Callable[..., Neutral]] = {
    "anthropic": anthropic,
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
    "gemini": gemini,
    "amazonq": amazonq,
    "bedrock": bedrock,
}
