"""The format of Anthropic's Messages API: `input_schema`, `tool_use` and `tool_result` blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.dialects.anthropic import tools as outgoing
from dragoman.dialects.anthropic.blocks import decode_message
from dragoman.dialects.anthropic.tools import ToolSet, decode_tool_choice, decode_tool_set
from dragoman.dialects.anthropic.wire import WireMessage, WireToolChoice
from dragoman.ir import Message, Tool, ToolCall, ToolChoice, ToolResult
from dragoman.tools.convert.base import (
    Tools,
    find_calls,
    find_results,
    response_as_text,
    to_ir_tools,
    to_plain_json,
)

_decode_choice = msgspec.json.Decoder(WireToolChoice | None).decode
_decode_messages = msgspec.json.Decoder(list[WireMessage]).decode


def encode_tools(tools: Tools) -> list[Any]:
    return outgoing.encode_tools(to_ir_tools(tools))


def decode_tools(wire: list[Any]) -> tuple[Tool, ...]:
    """Decode functions, including deferred ones, and the tools that Anthropic defines but the client executes."""
    return decode_tool_set(msgspec.json.encode(wire)).tools


def encode_choice(choice: ToolChoice) -> Any:
    return outgoing.encode_tool_choice(choice)


def decode_choice(wire: Any) -> ToolChoice:
    return decode_tool_choice(
        jsontext.decode(_decode_choice, msgspec.json.encode(wire), "tool_choice"), ToolSet()
    )


def encode_calls(calls: Sequence[ToolCall], text: str = "", *, signatures: bool = False) -> list[Any]:
    """Encode one assistant message; `signatures=True` adds them in thinking blocks only the gateway understands."""
    return [to_plain_json(outgoing.encode_calls(calls, text, signatures=signatures))]


def decode_calls(wire: list[Any]) -> tuple[ToolCall, ...]:
    return find_calls(_messages(wire))


def encode_results(results: Sequence[ToolResult]) -> list[Any]:
    return [outgoing.encode_results([response_as_text(result) for result in results])] if results else []


def decode_results(wire: list[Any]) -> tuple[ToolResult, ...]:
    return find_results(_messages(wire))


def _messages(wire: list[Any]) -> list[Message]:
    found = jsontext.decode(_decode_messages, msgspec.json.encode(wire), "messages")
    return [message for one in found for message in decode_message(one).messages]
