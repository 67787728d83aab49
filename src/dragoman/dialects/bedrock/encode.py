"""Encode a Converse response; the stream encoder uses the same functions."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.dialects.base import Answer
from dragoman.ir import (
    AFTER_TEXT,
    ON_THOUGHT,
    Finished,
    Part,
    Response,
    Signature,
    StopReason,
    Text,
    Thought,
    ToolCall,
    Usage,
    seal,
)

_json = msgspec.json.Encoder().encode

_STOP: dict[StopReason, str] = {
    "end": "end_turn",
    "tool_calls": "tool_use",
    "max_tokens": "max_tokens",
    "blocked": "content_filtered",
    "malformed": "malformed_tool_use",
    "other": "end_turn",
}


class Echo(msgspec.Struct, frozen=True):
    """Fields that the client requested with `additionalModelResponseFieldPaths`."""

    thought_tokens: bool = False


def encode_response(response: Response, answer: Answer) -> bytes:
    message = {"role": "assistant", "content": encode_blocks(response.parts, answer)}
    return _json(
        {
            "output": {"message": message},
            **encode_stop(response.finished, response.usage, answer),
            **encode_metadata(response.usage, answer),
        }
    )


def encode_count(tokens: int) -> bytes:
    return b'{"inputTokens":%d}' % tokens


def encode_blocks(parts: tuple[Part, ...], answer: Answer) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, Thought):
            _add_thought(blocks, part, answer)
        elif isinstance(part, Text):
            _add_text(blocks, part, answer)
        elif isinstance(part, ToolCall):
            if part.signature is not None and answer.with_thinking:
                _sign(blocks, part.signature, part.id)
            use = {"toolUseId": part.id, "name": part.name, "input": msgspec.Raw(part.args)}
            blocks.append({"toolUse": use})
    return blocks


def encode_stop(finished: Finished, usage: Usage, answer: Answer) -> dict[str, Any]:
    """Return the stop reason, and the number of thinking tokens if the client asked for it.

    Converse's `usage` has no field for them; clients request the field of Anthropic's response.
    """
    stop: dict[str, Any] = {"stopReason": _STOP[finished.reason]}
    if isinstance(answer.echo, Echo) and answer.echo.thought_tokens:
        details = {"output_tokens_details": {"thinking_tokens": usage.thought_tokens}}
        stop["additionalModelResponseFields"] = {"usage": details}
    return stop


def encode_metadata(usage: Usage, answer: Answer) -> dict[str, Any]:
    """Return usage and latency.

    Amazon's `inputTokens` exclude cached tokens, Google's count includes them (known problem H6); `totalTokens` has all.
    """
    prompt = usage.input_tokens or answer.input_tokens
    counts = {
        "inputTokens": max(0, prompt - usage.cached_tokens),
        "outputTokens": usage.output_tokens,
        "totalTokens": prompt + usage.output_tokens,
        "cacheReadInputTokens": usage.cached_tokens,
        "cacheWriteInputTokens": 0,
    }
    return {"usage": counts, "metrics": {"latencyMs": answer.elapsed_ms()}}


def _add_thought(blocks: list[dict[str, Any]], part: Thought, answer: Answer) -> None:
    if answer.with_thinking and (part.text or part.signature is not None):
        _open_reasoning(blocks)["text"] += part.text
        if part.signature is not None:
            _sign(blocks, part.signature, ON_THOUGHT)


def _add_text(blocks: list[dict[str, Any]], part: Text, answer: Answer) -> None:
    if part.text and blocks and "text" in blocks[-1]:
        blocks[-1]["text"] += part.text
    elif part.text:
        blocks.append({"text": part.text})
    elif part.signature is not None and answer.with_thinking and _has_open_reasoning(blocks):
        _sign(blocks, part.signature, AFTER_TEXT)


def _has_open_reasoning(blocks: list[dict[str, Any]]) -> bool:
    """Whether the last block is reasoning without a signature, so that more can be added to it."""
    last = blocks[-1].get("reasoningContent") if blocks else None
    return last is not None and "signature" not in last["reasoningText"]


def _open_reasoning(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the reasoning of the last block; append a new block if there is none that is open."""
    if not _has_open_reasoning(blocks):
        blocks.append({"reasoningContent": {"reasoningText": {"text": ""}}})
    text: dict[str, Any] = blocks[-1]["reasoningContent"]["reasoningText"]
    return text


def _sign(blocks: list[dict[str, Any]], signature: Signature, target: str) -> None:
    """Add a sealed signature to the reasoning; that of a call goes into the block before the call."""
    _open_reasoning(blocks)["signature"] = seal(signature, target)
