"""Amazon Q's format: `toolSpecification`, `toolUses` and `toolResults`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.dialects.amazonq import tools as outgoing
from dragoman.dialects.amazonq.messages import decode_results as results_of
from dragoman.dialects.amazonq.messages import decode_use
from dragoman.dialects.amazonq.tools import decode_tools as tools_of
from dragoman.dialects.amazonq.wire import ChatMessage, decode_chat_messages
from dragoman.errors import InvalidRequest
from dragoman.ir import Tool, ToolCall, ToolChoice, ToolResult
from dragoman.tools.convert.base import Tools, response_as_text, to_ir_tools, to_plain_json


def encode_tools(tools: Tools) -> list[Any]:
    wires: list[Any] = to_plain_json(outgoing.encode_tools(to_ir_tools(tools)))
    return wires


def decode_tools(wire: list[Any]) -> tuple[Tool, ...]:
    """Decode the tools, sorted by name because the client's order differs from request to request."""
    return tools_of(msgspec.json.encode(wire))


def encode_choice(choice: ToolChoice) -> Any:
    """Return None: Amazon Q has no tool choice. Raise `InvalidRequest` for any choice but `auto`."""
    outgoing.encode_tool_choice(choice)


def decode_choice(wire: Any) -> ToolChoice:
    if wire is not None:
        raise InvalidRequest("Amazon Q has no such thing", where="tool_choice")
    return ToolChoice()


def encode_calls(calls: Sequence[ToolCall], text: str = "") -> list[Any]:
    return [outgoing.encode_calls(calls, text)]


def decode_calls(wire: list[Any]) -> tuple[ToolCall, ...]:
    return tuple(
        decode_use(use, f"history[{index}]", [])
        for index, message in enumerate(_messages(wire))
        if message.assistant_response_message is not None
        for use in message.assistant_response_message.tool_uses or ()
    )


def encode_results(results: Sequence[ToolResult]) -> list[Any]:
    """Encode all results as one user message.

    Raises `InvalidRequest` for a result with files: Amazon Q has them only in the message's own `images`.
    """
    converted = [result if not result.content else response_as_text(result) for result in results]
    return [outgoing.encode_results(converted)] if converted else []


def decode_results(wire: list[Any]) -> tuple[ToolResult, ...]:
    """Decode the results; a result without a name, which is usual, gets that of the call with its id."""
    names = {call.id: call.name for call in decode_calls(wire)}
    return tuple(
        msgspec.structs.replace(result, name=result.name or names.get(result.call_id, ""))
        for index, message in enumerate(_messages(wire))
        if message.user_input_message is not None
        for result in results_of(
            message.user_input_message.user_input_message_context or {}, f"history[{index}]"
        )
    )


def _messages(wire: list[Any]) -> list[ChatMessage]:
    return jsontext.decode(decode_chat_messages, msgspec.json.encode(wire), "history")
