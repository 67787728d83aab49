"""Tool searches in a history: server calls for the client, but ordinary function calls and results for Gemini."""

from __future__ import annotations

import msgspec

from dragoman.incremental.fold import derive
from dragoman.ir import Message, Part, Role, ServerCall, ServerResult, Text, ToolCall, ToolResult

_FOUND = "These functions are declared now and can be called."
_NOTHING = "Nothing matches. Search again with other or fewer words, or go on without."
SERVER_TOOL_PARTS = frozenset({ServerCall, ServerResult})  # the part types that a tool search may have
_NAMELESS = "search"  # id for searches whose id the client dropped; calls and results then match by order


def search_tool_result(result: ServerResult, name: str) -> ToolResult:
    """Return the function result of a search: the same in the search's own round and in every later history."""
    call_id = result.call_id or _NAMELESS
    if result.error:
        why = Text(text=result.output or result.error)
        return ToolResult(call_id=call_id, name=name, content=(why,), is_error=True)
    told = {"tools": result.tools, "note": _FOUND if result.tools else _NOTHING}
    return ToolResult(call_id=call_id, name=name, response=msgspec.json.encode(told))


def expand_searches(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the messages with every tool search as a step of its own: a call and its result."""
    return tuple(step for message in messages for step in expand_message(message))


def expand_message(message: Message) -> tuple[Message, ...]:
    """Split one message at its tool searches; cached. Return the message itself if it has none."""
    if message.role != "model" or SERVER_TOOL_PARTS.isdisjoint(map(type, message.parts)):
        return (message,)
    if not any(map(_is_search, message.parts)):
        return (message,)
    return derive(message, "searches", None, _expand, message)


def _is_search(part: Part) -> bool:
    return isinstance(part, ServerCall | ServerResult) and part.kind == "tool_search"


def _expand(message: Message) -> tuple[Message, ...]:
    """Start a new step after each search result, unless the step has calls whose results the client sends."""
    steps: list[Message] = []
    said: list[Part] = []
    results: list[Part] = []
    names: dict[str, str] = {}
    waiting = False
    for part in message.parts:
        if isinstance(part, ServerResult) and part.kind == "tool_search":
            results.append(search_tool_result(part, names.get(part.call_id, "")))
            continue
        if results and not waiting:
            steps += _step(said, results)
            said, results = [], []
        waiting = waiting or isinstance(part, ToolCall)
        if isinstance(part, ServerCall) and part.kind == "tool_search":
            names[part.id] = part.name
            said.append(_call(part))
        else:
            said.append(part)
    return (*steps, *_step(said, results))


def _call(call: ServerCall) -> ToolCall:
    return ToolCall(id=call.id or _NAMELESS, name=call.name, args=call.args, signature=call.signature)


def _step(said: list[Part], results: list[Part]) -> list[Message]:
    spoken: list[tuple[Role, list[Part]]] = [("model", said), ("user", results)]
    return [Message(role=role, parts=tuple(parts)) for role, parts in spoken if parts]
