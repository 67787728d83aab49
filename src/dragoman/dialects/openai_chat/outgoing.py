"""Encode tools, tool choice, calls and results for a program that itself calls a Chat Completions API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.dialects.openai_chat.encode import Echo, encode_call
from dragoman.ir import Media, Text, Tool, ToolCall, ToolChoice, ToolResult

_CHOICES = {"auto": "auto", "validated": "auto", "any": "required", "none": "none"}
_NO_ECHO = Echo()


def encode_tools(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    return [{"type": "function", "function": _encode_function(tool)} for tool in tools]


def encode_tool_choice(choice: ToolChoice) -> str | dict[str, Any]:
    word = _CHOICES[choice.mode]
    if not choice.names or choice.mode == "none":
        return word
    named = [{"type": "function", "function": {"name": name}} for name in choice.names]
    if choice.mode == "any" and len(named) == 1:
        return named[0]
    return {"type": "allowed_tools", "allowed_tools": {"mode": word, "tools": named}}


def encode_calls(calls: Sequence[ToolCall], text: str) -> dict[str, Any]:
    wires = [encode_call(call, _NO_ECHO) for call in calls]
    return {"role": "assistant", "content": text or None, "tool_calls": wires}


def encode_result(result: ToolResult) -> dict[str, Any]:
    """Encode a result; as a string if it is only text, because older services accept nothing else.

    The API has no error flag, so the text of an error must say that it is one.
    """
    content: str | list[dict[str, Any]] = [_content(part) for part in result.content]
    if not any(isinstance(part, Media) for part in result.content):
        content = "\n".join(part.text for part in result.content if isinstance(part, Text))
    return {"role": "tool", "tool_call_id": result.call_id, "content": content}


def _encode_function(tool: Tool) -> dict[str, Any]:
    described = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **described, "parameters": msgspec.Raw(tool.schema)}


def _content(part: Text | Media) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    url = f"data:{part.mime};base64,{part.data}" if part.data else part.uri
    if part.mime.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "file", "file": {"file_data": url}}
