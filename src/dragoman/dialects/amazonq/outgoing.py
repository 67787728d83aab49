"""What a program sends to Amazon Q about tools: declarations, calls it keeps, results."""

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
    if choice.mode != "auto" or choice.names:
        raise InvalidRequest("Amazon Q leaves the choice of tools to the model", where="tool_choice")


def encode_calls(calls: Sequence[ToolCall], text: str) -> dict[str, Any]:
    """One message of the assistant's."""
    uses = [{"toolUseId": call.id, "name": call.name, "input": call.arguments} for call in calls]
    return {"assistantResponseMessage": {"content": text, "toolUses": uses}}


def encode_results(results: Sequence[ToolResult]) -> dict[str, Any]:
    """All results of a step in one message of the user's; what a result holds in JSON stays JSON."""
    context = {"userInputMessageContext": {"toolResults": [_result(result) for result in results]}}
    return {"userInputMessage": {"content": "", **context}}


def _result(result: ToolResult) -> dict[str, Any]:
    return {
        "toolUseId": result.call_id,
        "content": _content(result),
        "status": "error" if result.is_error else "success",
    }


def _content(result: ToolResult) -> list[dict[str, Any]]:
    """Files of a result belong to the message's own `images`, which say nothing of whose they are."""
    if any(isinstance(part, Media) for part in result.content):
        raise InvalidRequest("Amazon Q's tool results hold no files", where=result.name)
    text = "\n".join(part.text for part in result.content if isinstance(part, Text))
    if not result.response:
        return [{"text": text}]
    json = {"json": msgspec.json.decode(result.response)}
    return [{"text": text}, json] if text else [json]
