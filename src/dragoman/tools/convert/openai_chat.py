"""The format of OpenAI's Chat Completions API: nested functions, `tool_calls` and `tool` messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.dialects.openai_chat import tools as outgoing
from dragoman.dialects.openai_chat.messages import decode_message
from dragoman.dialects.openai_chat.tools import decode_tool_choice, decode_tool_set
from dragoman.dialects.openai_chat.wire import WireMessage, WireToolChoice
from dragoman.ir import Message, Tool, ToolCall, ToolChoice, ToolResult
from dragoman.tools.convert.base import (
    Tools,
    find_calls,
    find_results,
    response_as_text,
    to_ir_tools,
    to_plain_json,
)

_decode_choice = msgspec.json.Decoder(str | WireToolChoice | None).decode
_decode_messages = msgspec.json.Decoder(list[WireMessage]).decode


def encode_tools(tools: Tools) -> list[Any]:
    wires: list[Any] = to_plain_json(outgoing.encode_tools(to_ir_tools(tools)))
    return wires


def decode_tools(wire: list[Any]) -> tuple[Tool, ...]:
    return decode_tool_set(msgspec.json.encode(wire), "tools").tools


def encode_choice(choice: ToolChoice) -> Any:
    return outgoing.encode_tool_choice(choice)


def decode_choice(wire: Any) -> ToolChoice:
    choice = jsontext.decode(_decode_choice, msgspec.json.encode(wire), "tool_choice")
    return decode_tool_choice(choice, parallel=True)


def encode_calls(calls: Sequence[ToolCall], text: str = "") -> list[Any]:
    """Encode one assistant message; signatures are in `extra_content`, as in Google's OpenAI-compatible API."""
    return [outgoing.encode_calls(calls, text)]


def decode_calls(wire: list[Any]) -> tuple[ToolCall, ...]:
    return find_calls(_messages(wire))


def encode_results(results: Sequence[ToolResult]) -> list[Any]:
    return [outgoing.encode_result(response_as_text(result)) for result in results]


def decode_results(wire: list[Any]) -> tuple[ToolResult, ...]:
    return find_results(_messages(wire))


def _messages(wire: list[Any]) -> list[Message]:
    found = jsontext.decode(_decode_messages, msgspec.json.encode(wire), "messages")
    return [decode_message(one).message for one in found]
