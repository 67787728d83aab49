"""The format of OpenAI's Responses API: flat functions, `function_call` and `function_call_output` items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.dialects.openai_responses import output_items
from dragoman.dialects.openai_responses.decode import decode_tool_choice
from dragoman.dialects.openai_responses.items import decode_item
from dragoman.dialects.openai_responses.tools import ToolSet, decode_tool_set
from dragoman.dialects.openai_responses.wire import decode_item as decode_wire
from dragoman.ir import Message, SealedSignature, Tool, ToolCall, ToolChoice, ToolResult
from dragoman.tools.convert.base import (
    Tools,
    find_calls,
    find_results,
    response_as_text,
    to_ir_tools,
    to_plain_json,
)


def encode_tools(tools: Tools) -> list[Any]:
    wires: list[Any] = to_plain_json(output_items.encode_tools(to_ir_tools(tools)))
    return wires


def decode_tools(wire: list[Any]) -> tuple[Tool, ...]:
    """Decode the tools; one in a namespace is named `namespace.name`."""
    return decode_tool_set(msgspec.json.encode(wire)).tools


def encode_choice(choice: ToolChoice) -> Any:
    return output_items.encode_tool_choice(choice)


def decode_choice(wire: Any) -> ToolChoice:
    return decode_tool_choice(msgspec.json.encode(wire), ToolSet(), parallel=True)


def encode_calls(calls: Sequence[ToolCall], text: str = "", *, signatures: bool = False) -> list[Any]:
    """Encode input items; `signatures=True` adds them in reasoning items that only the gateway understands."""
    return output_items.encode_calls(calls, text, signatures=signatures)


def decode_calls(wire: list[Any]) -> tuple[ToolCall, ...]:
    """Decode the calls in the `output` of a response or the `input` of a request, with their signatures."""
    messages, sealed = _messages(wire)
    by_call = {one.target: one.signature for one in sealed}
    return tuple(
        msgspec.structs.replace(call, signature=by_call.get(call.id)) for call in find_calls(messages)
    )


def encode_results(results: Sequence[ToolResult]) -> list[Any]:
    return [output_items.encode_result(response_as_text(result)) for result in results]


def decode_results(wire: list[Any]) -> tuple[ToolResult, ...]:
    messages, _ = _messages(wire)
    return find_results(messages)


def _messages(wire: list[Any]) -> tuple[list[Message], list[SealedSignature]]:
    messages: list[Message] = []
    sealed: list[SealedSignature] = []
    for index, one in enumerate(wire):
        raw = msgspec.json.encode(one)
        found = decode_item(jsontext.decode(decode_wire, raw, f"input[{index}]"), raw)
        messages.append(Message(role=found.role, parts=found.parts))
        sealed += found.sealed
    return messages, sealed
