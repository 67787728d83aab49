"""Encode tools, tool choice, calls and results for a program that itself calls a Responses API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.dialects.openai_responses.output import call_item, reasoning_item
from dragoman.dialects.openai_responses.tools import ClientTool
from dragoman.ir import Media, Text, Tool, ToolCall, ToolChoice, ToolResult, seal

_MODES = {"auto": "auto", "validated": "auto", "any": "required", "none": "none"}


def encode_tools(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Encode declarations; not as `strict`, because OpenAI accepts only a subset of JSON Schema there."""
    return [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description or None,
            "parameters": msgspec.Raw(tool.schema),
            "strict": False,
        }
        for tool in tools
    ]


def encode_tool_choice(choice: ToolChoice) -> str | dict[str, Any]:
    word = _MODES[choice.mode]
    if not choice.names or choice.mode == "none":
        return word
    named = [{"type": "function", "name": name} for name in choice.names]
    if choice.mode == "any" and len(named) == 1:
        return named[0]
    return {"type": "allowed_tools", "mode": word, "tools": named}


def encode_calls(calls: Sequence[ToolCall], text: str, *, signatures: bool) -> list[dict[str, Any]]:
    """Encode calls as input items.

    Set `signatures` only if the API is this gateway: OpenAI rejects sealed signatures.
    """
    items: list[dict[str, Any]] = []
    if text:
        items.append({"role": "assistant", "content": text})
    for call in calls:
        if signatures and call.signature is not None:
            sealed = seal(call.signature, call.id)
            items.append(_without_id(reasoning_item("", "", sealed, "completed")))
        items.append(_without_id(call_item("", ClientTool(name=call.name), call.id, call.args)))
    return items


def encode_result(result: ToolResult) -> dict[str, Any]:
    """Encode a result. The API has no error flag, so the text of an error must say that it is one."""
    output: str | list[dict[str, Any]] = [_content(part) for part in result.content]
    if not any(isinstance(part, Media) for part in result.content):
        output = "\n".join(part.text for part in result.content if isinstance(part, Text))
    return {"type": "function_call_output", "call_id": result.call_id, "output": output}


def _without_id(item: dict[str, Any]) -> dict[str, Any]:
    """Return the item without its id, which only items that the service created have."""
    return {key: value for key, value in item.items() if key != "id"}


def _content(part: Text | Media) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "input_text", "text": part.text}
    url = f"data:{part.mime};base64,{part.data}" if part.data else part.uri
    if part.mime.startswith("image/"):
        return {"type": "input_image", "image_url": url}
    return {"type": "input_file", "file_data" if part.data else "file_url": url}
