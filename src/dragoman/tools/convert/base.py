"""`ToolFormat`, the protocol of the converter modules, and the helpers they share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import msgspec

from dragoman.ir import Message, Text, Tool, ToolCall, ToolChoice, ToolResult
from dragoman.tools.definition import ToolDefinition
from dragoman.tools.results import result_text

Tools = Iterable[ToolDefinition | Tool]


class ToolFormat(Protocol):
    """The functions of a converter module; the package's docstring describes them."""

    def encode_tools(self, tools: Tools) -> list[Any]: ...

    def decode_tools(self, wire: list[Any]) -> tuple[Tool, ...]: ...

    def encode_choice(self, choice: ToolChoice) -> Any: ...

    def decode_choice(self, wire: Any) -> ToolChoice: ...

    def encode_calls(self, calls: Sequence[ToolCall], text: str = "") -> list[Any]: ...

    def decode_calls(self, wire: list[Any]) -> tuple[ToolCall, ...]: ...

    def encode_results(self, results: Sequence[ToolResult]) -> list[Any]: ...

    def decode_results(self, wire: list[Any]) -> tuple[ToolResult, ...]: ...


def to_ir_tools(tools: Tools) -> tuple[Tool, ...]:
    """Return the tools as `ir.Tool`s."""
    return tuple(tool.to_ir() if isinstance(tool, ToolDefinition) else tool for tool in tools)


def to_plain_json(wire: Any) -> Any:
    """Replace `msgspec.Raw` and Structs, which encoders leave in their output, by plain JSON values."""
    return msgspec.json.decode(msgspec.json.encode(wire))


def find_calls(messages: Iterable[Message]) -> tuple[ToolCall, ...]:
    return tuple(part for message in messages for part in message.parts if isinstance(part, ToolCall))


def find_results(messages: Iterable[Message]) -> tuple[ToolResult, ...]:
    return tuple(part for message in messages for part in message.parts if isinstance(part, ToolResult))


def response_as_text(result: ToolResult) -> ToolResult:
    """Render a JSON `response` as text, for APIs whose results are text and files."""
    if not result.response:
        return result
    files = tuple(part for part in result.content if not isinstance(part, Text))
    return msgspec.structs.replace(result, content=(Text(text=result_text(result)), *files), response=b"")
