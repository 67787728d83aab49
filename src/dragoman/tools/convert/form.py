"""What every form can do, and the few steps that all of them share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import msgspec

from dragoman.ir import Message, Text, Tool, ToolCall, ToolChoice, ToolResult
from dragoman.tools.definition import ToolDefinition
from dragoman.tools.results import result_text

Tools = Iterable[ToolDefinition | Tool]


class Form(Protocol):
    """See the package's docstring."""

    def encode_tools(self, tools: Tools) -> list[Any]: ...

    def decode_tools(self, wire: list[Any]) -> tuple[Tool, ...]: ...

    def encode_choice(self, choice: ToolChoice) -> Any: ...

    def decode_choice(self, wire: Any) -> ToolChoice: ...

    def encode_calls(self, calls: Sequence[ToolCall], text: str = "") -> list[Any]: ...

    def decode_calls(self, wire: list[Any]) -> tuple[ToolCall, ...]: ...

    def encode_results(self, results: Sequence[ToolResult]) -> list[Any]: ...

    def decode_results(self, wire: list[Any]) -> tuple[ToolResult, ...]: ...


def neutral(tools: Tools) -> tuple[Tool, ...]:
    return tuple(tool.to_ir() if isinstance(tool, ToolDefinition) else tool for tool in tools)


def plain(wire: Any) -> Any:
    """JSON values without the raw pieces that encoders leave in them."""
    return msgspec.json.decode(msgspec.json.encode(wire))


def calls_in(messages: Iterable[Message]) -> tuple[ToolCall, ...]:
    return tuple(part for message in messages for part in message.parts if isinstance(part, ToolCall))


def results_in(messages: Iterable[Message]) -> tuple[ToolResult, ...]:
    return tuple(part for message in messages for part in message.parts if isinstance(part, ToolResult))


def as_text(result: ToolResult) -> ToolResult:
    """For APIs whose results are text and files: a JSON object is written out."""
    if not result.response:
        return result
    files = tuple(part for part in result.content if not isinstance(part, Text))
    return msgspec.structs.replace(result, content=(Text(text=result_text(result)), *files), response=b"")
