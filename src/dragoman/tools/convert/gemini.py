"""Gemini's format: `functionDeclarations`, `toolConfig`, `functionCall` and `functionResponse` parts.

Gemini restricts function names, so names are mapped reversibly; decoders map them back when given the tools.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from dragoman.dialects.base import Target
from dragoman.dialects.gemini import origin_of, profile_of
from dragoman.dialects.gemini.client.contents import decode_contents
from dragoman.dialects.gemini.client.decode import decode_tool_config
from dragoman.dialects.gemini.client.decode import decode_tools as decode_declarations
from dragoman.dialects.gemini.contents import encode_contents
from dragoman.dialects.gemini.parts import EncodingContext
from dragoman.dialects.gemini.stream import GeminiStream
from dragoman.dialects.gemini.tools import declare, encode_tool_choice
from dragoman.ids import new_id
from dragoman.ir import (
    Collector,
    Event,
    Message,
    Part,
    Response,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from dragoman.schema import NameMap
from dragoman.tools.convert.base import Tools, find_calls, find_results, to_ir_tools, to_plain_json

#: Google's alias for its newest Flash model.
NEWEST_MODEL = Target(model="gemini-flash-latest")


def encode_tools(tools: Tools, *, target: Target = NEWEST_MODEL) -> list[Any]:
    """Encode the tools as one `functionDeclarations` entry; return an empty list if there are none."""
    declarations = declare(to_ir_tools(tools), target)
    return [{"functionDeclarations": to_plain_json(declarations.json)}] if declarations.declared else []


def decode_tools(wire: list[Any]) -> tuple[Tool, ...]:
    """Decode the functions; Google's built-in tools are left out."""
    functions, _ = decode_declarations(msgspec.json.encode(wire))
    return functions


def encode_choice(choice: ToolChoice, tools: Tools = ()) -> Any:
    """Encode the choice as `toolConfig`; given the tools, check the names and map them as `encode_tools` does."""
    declared = to_ir_tools(tools) or tuple(Tool(name=name) for name in choice.names) or (Tool(name="any"),)
    config = encode_tool_choice(choice, declare(declared, NEWEST_MODEL))
    return config or {"functionCallingConfig": {"mode": "AUTO"}}


def decode_choice(wire: Any, tools: Tools = ()) -> ToolChoice:
    choice, _ = decode_tool_config(msgspec.json.encode(wire))
    names = _names(tools)
    return msgspec.structs.replace(choice, names=tuple(map(names.from_wire, choice.names)))


def encode_calls(calls: Sequence[ToolCall], text: str = "", *, target: Target = NEWEST_MODEL) -> list[Any]:
    """Encode one model content; a first call without a thought signature gets Google's sentinel value."""
    parts: tuple[Part, ...] = (Text(text=text), *calls) if text else tuple(calls)
    return _contents(Message(role="model", parts=parts), target)


def decode_calls(wire: list[Any], tools: Tools = ()) -> tuple[ToolCall, ...]:
    """Decode the calls in contents of a request or a response; calls without an id get a numbered one."""
    names = _names(tools)
    calls = find_calls(decode_contents(msgspec.json.encode(wire)))
    return tuple(msgspec.structs.replace(call, name=names.from_wire(call.name)) for call in calls)


def encode_results(results: Sequence[ToolResult], *, target: Target = NEWEST_MODEL) -> list[Any]:
    """Encode all results of a step as one user content, as Google requires."""
    return _contents(Message(role="user", parts=tuple(results)), target)


def decode_results(wire: list[Any], tools: Tools = ()) -> tuple[ToolResult, ...]:
    """Decode the results; a response of the form `{"error": …}`, as Google documents it, is an error."""
    names = _names(tools)
    found = find_results(decode_contents(msgspec.json.encode(wire)))
    return tuple(
        msgspec.structs.replace(one, name=names.from_wire(one.name), is_error=_is_error(one)) for one in found
    )


class ToolCallReader:
    """Decodes the bytes of a Gemini response, streamed or not, in any chunking.

    `feed(data)` returns the calls completed by this data; `close()` returns the whole response, or raises
    `UpstreamError` if it was malformed, incomplete or an error.
    """

    def __init__(
        self,
        tools: Tools = (),
        *,
        target: Target = NEWEST_MODEL,
        new_id: Callable[[], str] = new_id,
    ) -> None:
        names = _names(tools)
        self._stream = GeminiStream(names, origin_of(target), lambda: f"call_{new_id()}")
        self._collector = Collector()

    def feed(self, data: bytes) -> list[ToolCall]:
        return self._take(self._stream.feed(data))

    def close(self) -> Response:
        self._take(self._stream.close())
        return self._collector.close()

    def _take(self, events: list[Event]) -> list[ToolCall]:
        for event in events:
            self._collector.feed(event)
        return [event for event in events if isinstance(event, ToolCall)]


def _names(tools: Tools) -> NameMap:
    return NameMap.of(tool.name for tool in to_ir_tools(tools))


def _contents(message: Message, target: Target) -> list[Any]:
    names = NameMap.of(part.name for part in message.parts if isinstance(part, ToolCall | ToolResult))
    setting = EncodingContext(profile_of(target.model), names, origin_of(target))
    contents, _ = encode_contents((message,), setting)
    return [*map(msgspec.json.decode, contents)]


def _is_error(result: ToolResult) -> bool:
    return msgspec.json.decode(result.response, type=dict[str, msgspec.Raw]).keys() == {"error"}
