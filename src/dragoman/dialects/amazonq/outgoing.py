"""Encode tools, calls and results as a client of Amazon Q sends them.

This is the opposite direction of the other modules; `dragoman.tools.convert` uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.errors import InvalidRequest
from dragoman.ir import Media, Text, Tool, ToolCall, ToolChoice, ToolResult


def encode_tools(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    return [
        {
            "toolSpecification": {
                "name": tool.name,
                "description": tool.description,
                "inputSchema": {"json": msgspec.Raw(tool.schema)},
            }
        }
        for tool in tools
    ]


def encode_tool_choice(choice: ToolChoice) -> None:
    """Raise `InvalidRequest` for any choice but the default: Amazon Q has no tool choice."""
    if choice.mode != "auto" or choice.names:
        raise InvalidRequest("Amazon Q leaves the choice of tools to the model", where="tool_choice")


def encode_calls(calls: Sequence[ToolCall], text: str) -> dict[str, Any]:
    """Encode one assistant message."""
    uses = [{"toolUseId": call.id, "name": call.name, "input": call.arguments} for call in calls]
    return {"assistantResponseMessage": {"content": text, "toolUses": uses}}


def encode_results(results: Sequence[ToolResult]) -> dict[str, Any]:
    """Encode all results of a step as one user message; JSON responses stay JSON."""
    context = {"userInputMessageContext": {"toolResults": [_result(result) for result in results]}}
    return {"userInputMessage": {"content": "", **context}}


def _result(result: ToolResult) -> dict[str, Any]:
    return {
        "toolUseId": result.call_id,
        "content": _content(result),
        "status": "error" if result.is_error else "success",
    }


def _content(result: ToolResult) -> list[dict[str, Any]]:
    """Encode the content of a result; raise `InvalidRequest` if it has files.

    Amazon Q has files only in the message's `images`, which do not say which result they belong to.
    """
    if any(isinstance(part, Media) for part in result.content):
        raise InvalidRequest("Amazon Q's tool results hold no files", where=result.name)
    text = "\n".join(part.text for part in result.content if isinstance(part, Text))
    if not result.response:
        return [{"text": text}]
    json = {"json": msgspec.json.decode(result.response)}
    return [{"text": text}, json] if text else [json]
