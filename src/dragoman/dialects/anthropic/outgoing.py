"""Encode tools, tool choice, calls and results for a program that itself calls a Messages API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.dialects.anthropic.encode import encode_blocks
from dragoman.dialects.base import Answer
from dragoman.errors import InvalidRequest
from dragoman.ir import Media, Part, Text, Tool, ToolCall, ToolChoice, ToolResult

_TYPES = {"auto": "auto", "validated": "auto", "any": "any", "none": "none"}


def encode_tools(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Encode declarations. Anthropic requires `type` in every `input_schema`, also in an empty one."""
    return [
        {
            "name": tool.name,
            **({"description": tool.description} if tool.description else {}),
            "input_schema": {"type": "object", **msgspec.json.decode(tool.schema)},
        }
        for tool in tools
    ]


def encode_tool_choice(choice: ToolChoice) -> dict[str, Any]:
    """Encode a choice; raise `InvalidRequest` for a selection of tools, which Anthropic cannot express."""
    wire: dict[str, Any] = {"type": _TYPES[choice.mode]}
    if choice.names and choice.mode != "none":
        if len(choice.names) > 1 or choice.mode != "any":
            why = "Anthropic lets the model be told one tool, not a selection: declare only those"
            raise InvalidRequest(why, where="tool_choice")
        wire = {"type": "tool", "name": choice.names[0]}
    if not choice.parallel and choice.mode != "none":
        wire["disable_parallel_tool_use"] = True
    return wire


def encode_calls(calls: Sequence[ToolCall], text: str, *, signatures: bool) -> dict[str, Any]:
    """Encode calls as an assistant turn.

    Set `signatures` only if the API is this gateway: Anthropic rejects sealed signatures.
    """
    parts: tuple[Part, ...] = (Text(text=text), *calls) if text else tuple(calls)
    answer = Answer(id="", model="", with_thinking=signatures)
    return {"role": "assistant", "content": encode_blocks(parts, answer)}


def encode_results(results: Sequence[ToolResult]) -> dict[str, Any]:
    """Encode all results of a step as one user turn, as Anthropic requires."""
    return {"role": "user", "content": [_result(result) for result in results]}


def _result(result: ToolResult) -> dict[str, Any]:
    block: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": result.call_id,
        "content": [_content(part) for part in result.content],
    }
    return {**block, "is_error": True} if result.is_error else block


def _content(part: Text | Media) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    source = {"type": "base64", "media_type": part.mime, "data": part.data}
    if not part.data:
        source = {"type": "url", "url": part.uri}
    return {"type": "image" if part.mime.startswith("image/") else "document", "source": source}
