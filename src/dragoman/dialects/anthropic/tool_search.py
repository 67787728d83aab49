"""Decode and encode Anthropic's tool search: its tools, and the results of searches.

See https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/tool-search-tool.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from dragoman import jsontext
from dragoman.dialects.anthropic.wire import Block, WireTool
from dragoman.ir import SearchBy, ServerResult, ServerTool

Json = dict[str, Any]

RESULT: Final = "tool_search_tool_result"
_SEARCH: Final = "tool_search"
_CODES = frozenset({"invalid_tool_input", "too_many_requests", "execution_time_exceeded"})


class _Reference(msgspec.Struct):
    tool_name: str = ""


class _Content(msgspec.Struct):
    tool_references: list[_Reference] | None = None
    error_code: str | None = None
    error_message: str | None = None


_decode_content = msgspec.json.Decoder(_Content | None).decode


def is_search(kind: str) -> bool:
    return kind.startswith(_SEARCH)


def read_search(wire: WireTool, family: str, where: str) -> ServerTool:
    by: SearchBy = "pattern" if "regex" in family else "words"
    return ServerTool(kind="tool_search", name=wire.name or family, where=where, by=by)


def read_found(block: Block, call_id: str, where: str) -> ServerResult:
    """Decode the result of a search: the tools found, or an error."""
    where = f"{where}.content"
    content = jsontext.decode(_decode_content, bytes(block.content) or b"null", where) or _Content()
    return ServerResult(
        call_id=call_id,
        kind="tool_search",
        tools=tuple(one.tool_name for one in content.tool_references or () if one.tool_name),
        error=content.error_code or "",
        output=content.error_message or "",
    )


def found_content(result: ServerResult) -> Json:
    if result.error:
        code = result.error if result.error in _CODES else "unavailable"
        message = result.output or None
        return {"type": f"{RESULT}_error", "error_code": code, "error_message": message}
    references = [{"type": "tool_reference", "tool_name": name} for name in result.tools]
    return {"type": "tool_search_tool_search_result", "tool_references": references}
