"""Google's own form: `functionDeclarations`, `toolConfig`, `functionCall` and `functionResponse` parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from dragoman.dialects.base import Target
from dragoman.dialects.gemini import origin_of, profile_of
from dragoman.dialects.gemini.client.contents import decode_contents
from dragoman.dialects.gemini.client.tools import decode_tool_config
from dragoman.dialects.gemini.client.tools import decode_tools as decode_declarations
from dragoman.dialects.gemini.contents import encode_contents
from dragoman.dialects.gemini.parts import Setting
from dragoman.dialects.gemini.stream import GeminiStream
from dragoman.dialects.gemini.tools import declare, encode_tool_choice
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
from dragoman.tokens import new_token
from dragoman.tools.convert.form import Tools, calls_in, neutral, plain, results_in

#: An alias that Google keeps pointing at its newest.
NEWEST = Target(model="gemini-flash-latest")


def encode_tools(tools: Tools, *, target: Target = NEWEST) -> list[Any]:
    """`tools` with one entry of `functionDeclarations`; names that Google refuses are mapped reversibly."""
    declarations = declare(neutral(tools), target)
    return [{"functionDeclarations": plain(declarations.json)}] if declarations.declared else []


def decode_tools(wire: list[Any]) -> tuple[Tool, ...]:
    """The functions; Google's built-in tools are nobody else's to run and are left out."""
    functions, _ = decode_declarations(msgspec.json.encode(wire))
    return functions


def encode_choice(choice: ToolChoice, tools: Tools = ()) -> Any:
    """`toolConfig`; with the tools, names are checked and mapped as `encode_tools` maps them."""
    declared = neutral(tools) or tuple(Tool(name=name) for name in choice.names) or (Tool(name="any"),)
    config = encode_tool_choice(choice, declare(declared, NEWEST))
    return config or {"functionCallingConfig": {"mode": "AUTO"}}


def decode_choice(wire: Any, tools: Tools = ()) -> ToolChoice:
    choice, _ = decode_tool_config(msgspec.json.encode(wire))
    names = _names(tools)
    return msgspec.structs.replace(choice, names=tuple(map(names.from_wire, choice.names)))


def encode_calls(calls: Sequence[ToolCall], text: str = "", *, target: Target = NEWEST) -> list[Any]:
    """One model content; a first call without its signature gets Google's sentinel."""
    parts: tuple[Part, ...] = (Text(text=text), *calls) if text else tuple(calls)
    return _contents(Message(role="model", parts=parts), target)


def decode_calls(wire: list[Any], tools: Tools = ()) -> tuple[ToolCall, ...]:
    """From contents of a history or an answer; calls without an id are numbered. With the tools, names lead back."""
    names = _names(tools)
    calls = calls_in(decode_contents(msgspec.json.encode(wire)))
    return tuple(msgspec.structs.replace(call, name=names.from_wire(call.name)) for call in calls)


def encode_results(results: Sequence[ToolResult], *, target: Target = NEWEST) -> list[Any]:
    """One user content for all results of a step, as Google wants them."""
    return _contents(Message(role="user", parts=tuple(results)), target)


def decode_results(wire: list[Any], tools: Tools = ()) -> tuple[ToolResult, ...]:
    """`{"error": …}` is how Google documents a failure."""
    names = _names(tools)
    found = results_in(decode_contents(msgspec.json.encode(wire)))
    return tuple(
        msgspec.structs.replace(one, name=names.from_wire(one.name), is_error=_is_error(one)) for one in found
    )


class Answer:
    """Google's answer, whole or streamed, as it comes from the network.

    `feed(bytes)` gives the calls that have become whole, `close()` the answer; a broken one raises.
    """

    def __init__(
        self,
        tools: Tools = (),
        *,
        target: Target = NEWEST,
        new_token: Callable[[], str] = new_token,
    ) -> None:
        names = _names(tools)
        self._stream = GeminiStream(names, origin_of(target), lambda: f"call_{new_token()}")
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
    return NameMap.of(tool.name for tool in neutral(tools))


def _contents(message: Message, target: Target) -> list[Any]:
    names = NameMap.of(part.name for part in message.parts if isinstance(part, ToolCall | ToolResult))
    setting = Setting(profile_of(target.model), names, origin_of(target))
    contents, _ = encode_contents((message,), setting)
    return [*map(msgspec.json.decode, contents)]


def _is_error(result: ToolResult) -> bool:
    return msgspec.json.decode(result.response, type=dict[str, msgspec.Raw]).keys() == {"error"}
