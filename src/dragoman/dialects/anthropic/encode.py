"""Encode a complete answer as a Message, and the JSON fragments that the stream needs too."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.dialects.anthropic.server_tools_out import KINDS, call_block, citations, result_block
from dragoman.dialects.base import Answer
from dragoman.ir import (
    AFTER_TEXT,
    ON_THOUGHT,
    CitedText,
    Finished,
    Part,
    Response,
    ServerCall,
    ServerResult,
    StopReason,
    Text,
    Thought,
    ToolCall,
    Usage,
    seal,
    text_events,
)

_json = msgspec.json.Encoder().encode

_STOP: dict[StopReason, str] = {
    "end": "end_turn",
    "tool_calls": "tool_use",
    "max_tokens": "max_tokens",
    "blocked": "refusal",
    "malformed": "refusal",
    "other": "end_turn",
}


def encode_response(response: Response, answer: Answer) -> bytes:
    message = {
        **_message(answer),
        "content": encode_blocks(response.parts, answer),
        **_stop(response.finished),
        "usage": _usage(response.usage, answer),
    }
    return _json(message)


def encode_blocks(parts: tuple[Part, ...], answer: Answer) -> list[dict[str, Any]]:
    """Encode parts as content blocks; thoughts and signatures only if the client asked for thinking."""
    blocks: list[dict[str, Any]] = []
    served: dict[str, ServerCall] = {}
    for part in parts:
        if isinstance(part, Text):
            _add_text(blocks, part, answer)
        elif isinstance(part, Thought):
            if answer.with_thinking:
                signature = seal(part.signature, ON_THOUGHT) if part.signature else ""
                blocks.append({"type": "thinking", "thinking": part.text, "signature": signature})
        elif isinstance(part, ToolCall):
            if part.signature and answer.with_thinking:
                _carrier(blocks)["signature"] = seal(part.signature, part.id)
            blocks.append(
                {"type": "tool_use", "id": part.id, "name": part.name, "input": msgspec.Raw(part.args)}
            )
        elif isinstance(part, ServerCall) and part.kind in KINDS:
            if part.kind == "tool_search" and part.signature and answer.with_thinking:
                _carrier(blocks)["signature"] = seal(part.signature, part.id)
            served[part.id] = part
            blocks.append(call_block(part))
        elif isinstance(part, ServerResult) and part.kind in KINDS:
            blocks.append(result_block(part, served.get(part.call_id)))
    return blocks


def encode_count(tokens: int) -> bytes:
    return b'{"input_tokens":%d}' % tokens


def open_message(answer: Answer) -> bytes:
    """Encode the message of `message_start`; its input tokens are our estimate (known problem H1)."""
    usage = _usage(Usage(), answer)
    return _json(
        {**_message(answer), "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    )


def encode_stop(finished: Finished) -> bytes:
    return _json(_stop(finished))


def encode_usage(usage: Usage, answer: Answer) -> bytes:
    return _json(_usage(usage, answer))


def _message(answer: Answer) -> dict[str, Any]:
    return {"id": answer.id, "type": "message", "role": "assistant", "model": answer.model}


def _stop(finished: Finished) -> dict[str, Any]:
    stop: dict[str, Any] = {"stop_reason": _STOP[finished.reason], "stop_sequence": None}
    if stop["stop_reason"] == "refusal":
        explanation = finished.detail or f"Gemini stopped with {finished.raw}"
        stop["stop_details"] = {"type": "refusal", "category": None, "explanation": explanation}
    return stop


def _usage(usage: Usage, answer: Answer) -> dict[str, Any]:
    """Encode token counts. Anthropic's input tokens exclude cached tokens, Google's include them (known problem H6)."""
    counts: dict[str, Any] = {
        "input_tokens": max(0, (usage.input_tokens or answer.input_tokens) - usage.cached_tokens),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
    }
    if usage.thought_tokens:
        counts["output_tokens_details"] = {"thinking_tokens": usage.thought_tokens}
    if usage.searches or usage.fetches:
        used = {"web_search_requests": usage.searches, "web_fetch_requests": usage.fetches}
        counts["server_tool_use"] = used
    return counts


def _add_text(blocks: list[dict[str, Any]], part: Text, answer: Answer) -> None:
    """Append text: cited text as blocks of its own, other text to the last block if that is uncited text."""
    if part.text and not part.citations and (not blocks or blocks[-1]["type"] != "text"):
        blocks.append({"type": "text", "text": part.text})  # the usual case
        return
    for piece in text_events(part):
        last = blocks[-1] if blocks else {}
        if isinstance(piece, CitedText):
            blocks.append({"type": "text", "text": piece.text, "citations": citations(piece.sources)})
        elif last.get("type") == "text" and "citations" not in last:
            last["text"] += piece.text
        else:
            blocks.append({"type": "text", "text": piece.text})
    last = blocks[-1] if blocks else {}
    if not part.text and part.signature and answer.with_thinking and last.get("signature") == "":
        last["signature"] = seal(part.signature, AFTER_TEXT)


def _carrier(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the thinking block that holds the signature of the next call; append an empty one if needed."""
    if not blocks or blocks[-1]["type"] != "thinking" or blocks[-1]["signature"]:
        blocks.append({"type": "thinking", "thinking": "", "signature": ""})
    return blocks[-1]
