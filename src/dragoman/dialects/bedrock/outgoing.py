"""Encode tools, tool choice, calls and results as a client of Converse sends them.

This is the opposite direction of the other modules; `dragoman.tools.convert` uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.dialects.base import Answer
from dragoman.dialects.bedrock.encode import encode_blocks
from dragoman.dialects.bedrock.files import MIMES
from dragoman.errors import InvalidRequest
from dragoman.ir import Media, Part, Text, Tool, ToolCall, ToolChoice, ToolResult

_CHOICES = {"auto": "auto", "validated": "auto", "any": "any"}
#: Media type -> kind of block and Bedrock's format; if several formats match, the first one in `MIMES`.
_FORMATS = {
    mime: (kind, name)
    for kind in ("video", "document", "image")
    for name, mime in reversed(MIMES[kind].items())
}


def encode_tools(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Encode tools as `toolSpec`s; Bedrock requires `type` in every schema."""
    return [
        {
            "toolSpec": {
                "name": tool.name,
                **({"description": tool.description} if tool.description else {}),
                "inputSchema": {"json": {"type": "object", **msgspec.json.decode(tool.schema)}},
            }
        }
        for tool in tools
    ]


def encode_tool_choice(choice: ToolChoice) -> dict[str, Any]:
    """Encode a choice; raise `InvalidRequest` for one that Converse cannot express."""
    word = _CHOICES.get(choice.mode)
    if word is None or not choice.parallel:
        why = "Converse can ask for some tool or one tool, not for none or one at a time"
        raise InvalidRequest(why, where="tool_choice")
    if not choice.names:
        return {word: {}}
    if len(choice.names) > 1 or word != "any":
        why = "Converse lets the model be told one tool, not a selection: declare only those"
        raise InvalidRequest(why, where="tool_choice")
    return {"tool": {"name": choice.names[0]}}


def encode_calls(calls: Sequence[ToolCall], text: str, *, signatures: bool) -> dict[str, Any]:
    """Encode one assistant message; `signatures` adds sealed signatures, which Bedrock itself rejects."""
    parts: tuple[Part, ...] = (Text(text=text), *calls) if text else tuple(calls)
    answer = Answer(id="", model="", with_thinking=signatures)
    return {"role": "assistant", "content": encode_blocks(parts, answer)}


def encode_results(results: Sequence[ToolResult]) -> dict[str, Any]:
    """Encode all results of a step as one user message."""
    return {"role": "user", "content": [{"toolResult": _result(result)} for result in results]}


def _result(result: ToolResult) -> dict[str, Any]:
    content = [_content(part, index + 1) for index, part in enumerate(result.content)]
    if result.response:
        content.insert(0, {"json": msgspec.json.decode(result.response)})
    block: dict[str, Any] = {"toolUseId": result.call_id, "content": content}
    return {**block, "status": "error"} if result.is_error else block


def _content(part: Text | Media, number: int) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"text": part.text}
    found = _FORMATS.get(part.mime)
    if found is None or not part.data:
        what = part.mime if part.data else "files by address"
        raise InvalidRequest(f"Bedrock's tool results hold no {what}", where="results")
    kind, name = found
    named = {"name": f"file-{number}"} if kind == "document" else {}
    return {kind: {**named, "format": name, "source": {"bytes": part.data}}}
