"""Build output items and stream events for calls of server tools, and citations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from dragoman.dialects.openai_responses.tools import APPROVAL
from dragoman.ir import ServerCall, ServerKind, ServerResult, Source

Json = dict[str, Any]
ItemEvents = list[tuple[str, Json]]  # events: type and fields

KINDS: frozenset[ServerKind] = frozenset(
    {"web_search", "web_fetch", "code_execution", "tool_search", "mcp", "mcp_list", "mcp_approval"}
)

#: Kinds whose items have no status.
_WITHOUT_STATUS: frozenset[ServerKind] = frozenset({"mcp_list", "mcp_approval"})

#: Values of `include`.
SOURCES = "web_search_call.action.sources"
OUTPUTS = "code_interpreter_call.outputs"

_ITEMS: dict[ServerKind, tuple[str, str]] = {
    "web_search": ("web_search_call", "ws_"),
    "web_fetch": ("web_search_call", "ws_"),
    "code_execution": ("code_interpreter_call", "ci_"),
    "mcp": ("mcp_call", "mcp_"),
    "mcp_list": ("mcp_list_tools", "mcpl_"),
    "mcp_approval": ("mcp_approval_request", APPROVAL),
}


def in_progress_item(call: ServerCall) -> Json:
    """Build the item of a call that is running."""
    return _item(call, "in_progress", _BODIES[call.kind](call, None, frozenset()))


def done_item(call: ServerCall, result: ServerResult | None, includes: frozenset[str]) -> Json:
    """Build the item of a call that ended; without a result, it was interrupted.

    `includes` is the `include` of the request.
    """
    body = _BODIES[call.kind](call, result, includes)
    if result is None:
        return _item(call, "incomplete", body)
    # A program that ran and failed is a completed call.
    failed = bool(result.error) and call.kind != "code_execution"
    return _item(call, "failed" if failed else "completed", body)


def opening(call: ServerCall) -> ItemEvents:
    """Return the events between the item's `added` event and its result."""
    name, _ = _ITEMS[call.kind]
    begun: ItemEvents = [(f"response.{name}.in_progress", {})]
    match call.kind:
        case "code_execution":
            code = _code(call)
            told = [
                (f"response.{name}_code.delta", {"delta": code}),
                (f"response.{name}_code.done", {"code": code}),
            ]
            return [*begun, *told, (f"response.{name}.interpreting", {})]
        case "mcp_approval":
            return []
        case "mcp_list":
            return begun
        case "mcp":
            args = call.args.decode()
            told = [("delta", {"delta": args}), ("done", {"arguments": args})]
            return [*begun, *((f"response.{name}_arguments.{event}", fields) for event, fields in told)]
        case _:
            return [*begun, (f"response.{name}.searching", {})]


def closing(call: ServerCall, result: ServerResult) -> ItemEvents:
    """Return the events between the result and the item's `done` event."""
    name, _ = _ITEMS[call.kind]
    if call.kind == "mcp_approval":
        return []
    failed = call.kind == "mcp" and bool(result.error)
    return [(f"response.{name}.{'failed' if failed else 'completed'}", {})]


def url_citations(sources: Iterable[Source], start: int, end: int) -> list[Json]:
    place = {"type": "url_citation", "start_index": start, "end_index": end}
    return [{**place, "url": source.url, "title": source.title} for source in sources]


def _item(call: ServerCall, status: str, body: Json) -> Json:
    name, prefix = _ITEMS[call.kind]
    told = {} if call.kind in _WITHOUT_STATUS else {"status": status}
    return {"type": name, "id": prefix + call.id, **told, **body}


def _search(call: ServerCall, result: ServerResult | None, includes: frozenset[str]) -> Json:
    queries = msgspec.json.decode(call.args, type=Json).get("queries") or [""]
    action: Json = {"type": "search", "query": queries[0], "queries": queries}
    if result is not None and SOURCES in includes:
        action["sources"] = [{"type": "url", "url": source.url} for source in result.sources]
    return {"action": action}


def _fetch(call: ServerCall, _result: ServerResult | None, _includes: frozenset[str]) -> Json:
    urls = msgspec.json.decode(call.args, type=Json).get("urls") or [None]
    return {"action": {"type": "open_page", "url": urls[0]}}


def _interpreted(call: ServerCall, result: ServerResult | None, includes: frozenset[str]) -> Json:
    shown = result is not None and OUTPUTS in includes
    outputs = [{"type": "logs", "logs": result.output}] if shown and result is not None else None
    return {"code": _code(call), "container_id": "google", "outputs": outputs}


def _code(call: ServerCall) -> str:
    return str(msgspec.json.decode(call.args, type=Json).get("code", ""))


def _mcp(call: ServerCall, result: ServerResult | None, _includes: frozenset[str]) -> Json:
    failed = result is not None and bool(result.error)
    error = {"type": "mcp_tool_execution_error", "content": result.error} if failed and result else None
    return {
        "name": call.name,
        "server_label": call.label,
        "arguments": call.args.decode(),
        "output": result.output or None if result is not None else None,
        "error": error,
        "approval_request_id": APPROVAL + call.approval if call.approval else None,
    }


def _listed(call: ServerCall, result: ServerResult | None, _includes: frozenset[str]) -> Json:
    tools = msgspec.Raw(result.output.encode()) if result is not None and result.output else []
    return {"server_label": call.label, "tools": tools, "error": None}


def _approval(call: ServerCall, _result: ServerResult | None, _includes: frozenset[str]) -> Json:
    return {"server_label": call.label, "name": call.name, "arguments": call.args.decode()}


_BODIES: dict[ServerKind, Callable[[ServerCall, ServerResult | None, frozenset[str]], Json]] = {
    "web_search": _search,
    "web_fetch": _fetch,
    "code_execution": _interpreted,
    "mcp": _mcp,
    "mcp_list": _listed,
    "mcp_approval": _approval,
}
