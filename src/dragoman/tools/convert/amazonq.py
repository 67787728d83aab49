"""Amazon Q's form: `toolSpecification`, `toolUses` and `toolResults`.

To move into `dialects/amazonq` when that dialect comes; until then nobody else speaks it here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.errors import InvalidRequest
from dragoman.ir import Media, Text, Tool, ToolCall, ToolChoice, ToolResult
from dragoman.tools.convert.form import Tools, neutral, plain
from dragoman.tools.results import result_text

_NOTHING = msgspec.Raw(b"")


class _Schema(msgspec.Struct, frozen=True):
    json: msgspec.Raw = _NOTHING


class _Specification(msgspec.Struct, rename="camel"):
    name: str
    input_schema: _Schema = _Schema()
    description: str | None = None


class _Tool(msgspec.Struct, rename="camel"):
    tool_specification: _Specification | None = None


class _Use(msgspec.Struct, rename="camel"):
    tool_use_id: str
    name: str
    input: dict[str, Any] | None = None


class _Content(msgspec.Struct):
    text: str | None = None
    json: msgspec.Raw = _NOTHING


class _Result(msgspec.Struct, rename="camel"):
    tool_use_id: str
    content: list[_Content] | None = None
    status: str | None = None
    tool_name: str | None = None


class _Context(msgspec.Struct, rename="camel"):
    tool_results: list[_Result] | None = None


class _User(msgspec.Struct, rename="camel"):
    user_input_message_context: _Context | None = None


class _Assistant(msgspec.Struct, rename="camel"):
    tool_uses: list[_Use] | None = None


class _Message(msgspec.Struct, rename="camel"):
    user_input_message: _User | None = None
    assistant_response_message: _Assistant | None = None


_decode_tools = msgspec.json.Decoder(list[_Tool]).decode
_decode_messages = msgspec.json.Decoder(list[_Message]).decode


def encode_tools(tools: Tools) -> list[Any]:
    wires = [
        {
            "toolSpecification": {
                "name": tool.name,
                "description": tool.description,
                "inputSchema": {"json": msgspec.Raw(tool.schema)},
            }
        }
        for tool in neutral(tools)
    ]
    encoded: list[Any] = plain(wires)
    return encoded


def decode_tools(wire: list[Any]) -> tuple[Tool, ...]:
    """In the order of their names: the client's own order changes with every request."""
    found = jsontext.decode(_decode_tools, msgspec.json.encode(wire), "tools")
    tools = [_tool(one.tool_specification) for one in found if one.tool_specification is not None]
    return tuple(sorted(tools, key=lambda tool: tool.name))


def encode_choice(choice: ToolChoice) -> Any:
    if choice.mode != "auto" or choice.names:
        raise InvalidRequest("Amazon Q leaves the choice of tools to the model", where="tool_choice")


def decode_choice(wire: Any) -> ToolChoice:
    if wire is not None:
        raise InvalidRequest("Amazon Q has no such thing", where="tool_choice")
    return ToolChoice()


def encode_calls(calls: Sequence[ToolCall], text: str = "") -> list[Any]:
    uses = [{"toolUseId": call.id, "name": call.name, "input": call.arguments} for call in calls]
    return [{"assistantResponseMessage": {"content": text, "toolUses": uses}}]


def decode_calls(wire: list[Any]) -> tuple[ToolCall, ...]:
    return tuple(
        ToolCall(id=use.tool_use_id, name=use.name, args=msgspec.json.encode(use.input or {}))
        for message in _messages(wire)
        if message.assistant_response_message is not None
        for use in message.assistant_response_message.tool_uses or ()
    )


def encode_results(results: Sequence[ToolResult]) -> list[Any]:
    """Files of a result belong to the message's own `images`, which only the dialect can fill."""
    wires = [
        {
            "toolUseId": result.call_id,
            "content": _content(result),
            "status": "error" if result.is_error else "success",
        }
        for result in results
    ]
    context = {"userInputMessageContext": {"toolResults": wires}}
    return [{"userInputMessage": {"content": "", **context}}] if wires else []


def decode_results(wire: list[Any]) -> tuple[ToolResult, ...]:
    """Names come from the calls before them, by id; a result itself has none."""
    names = {call.id: call.name for call in decode_calls(wire)}
    return tuple(
        _result(one, one.tool_name or names.get(one.tool_use_id, ""))
        for message in _messages(wire)
        if message.user_input_message is not None
        for one in (message.user_input_message.user_input_message_context or _Context()).tool_results or ()
    )


def _tool(wire: _Specification) -> Tool:
    schema = bytes(wire.input_schema.json) or b"{}"
    return Tool(name=wire.name, description=wire.description or "", schema=schema, where=wire.name)


def _content(result: ToolResult) -> list[Any]:
    if any(isinstance(part, Media) for part in result.content):
        raise InvalidRequest("Amazon Q's tool results hold no files", where=result.name)
    if result.response and not result.content:
        return [{"json": msgspec.json.decode(result.response)}]
    return [{"text": result_text(result)}]


def _result(wire: _Result, name: str) -> ToolResult:
    """One JSON object is a response; everything else is text, in its order."""
    pieces = [bytes(one.json) for one in wire.content or () if one.text is None]
    texts = [Text(text=one.text or bytes(one.json).decode()) for one in wire.content or ()]
    is_object = len(texts) == 1 and len(pieces) == 1 and pieces[0].startswith(b"{")
    return ToolResult(
        call_id=wire.tool_use_id,
        name=name,
        content=() if is_object else tuple(text for text in texts if text.text),
        response=pieces[0] if is_object else b"",
        is_error=wire.status == "error",
    )


def _messages(wire: list[Any]) -> list[_Message]:
    return jsontext.decode(_decode_messages, msgspec.json.encode(wire), "history")
