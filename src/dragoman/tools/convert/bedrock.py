"""The format of Bedrock's Converse API: `toolSpec`, `toolUse` and `toolResult` blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.dialects.bedrock import tools as outgoing
from dragoman.dialects.bedrock.blocks import decode_message
from dragoman.dialects.bedrock.tools import AnthropicChoice, ToolSet, decode_tool_choice, decode_tool_set
from dragoman.dialects.bedrock.wire import OneOf, WireMessage
from dragoman.ir import Message, Tool, ToolCall, ToolChoice, ToolResult
from dragoman.tools.convert.base import Tools, find_calls, find_results, to_ir_tools, to_plain_json

_decode_choice = msgspec.json.Decoder(OneOf | None).decode
_decode_messages = msgspec.json.Decoder(list[WireMessage]).decode


def encode_tools(tools: Tools) -> list[Any]:
    return outgoing.encode_tools(to_ir_tools(tools))


def decode_tools(wire: list[Any]) -> tuple[Tool, ...]:
    """Decode the tool specifications; tools that run on Amazon's servers are left out."""
    return decode_tool_set(msgspec.json.encode(wire)).tools


def encode_choice(choice: ToolChoice) -> Any:
    return outgoing.encode_tool_choice(choice)


def decode_choice(wire: Any) -> ToolChoice:
    found = jsontext.decode(_decode_choice, msgspec.json.encode(wire), "tool_choice")
    return decode_tool_choice(found, AnthropicChoice(), ToolSet()).tools


def encode_calls(calls: Sequence[ToolCall], text: str = "", *, signatures: bool = False) -> list[Any]:
    """Encode one assistant message; `signatures=True` adds them as reasoning that only the gateway understands."""
    return [to_plain_json(outgoing.encode_calls(calls, text, signatures=signatures))]


def decode_calls(wire: list[Any]) -> tuple[ToolCall, ...]:
    return find_calls(_messages(wire))


def encode_results(results: Sequence[ToolResult]) -> list[Any]:
    return [outgoing.encode_results(results)] if results else []


def decode_results(wire: list[Any]) -> tuple[ToolResult, ...]:
    return find_results(_messages(wire))


def _messages(wire: list[Any]) -> list[Message]:
    found = jsontext.decode(_decode_messages, msgspec.json.encode(wire), "messages")
    return [decode_message(one).message for one in found]
