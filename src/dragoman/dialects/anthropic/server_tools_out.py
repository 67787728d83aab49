"""Encode calls and results of server tools as content blocks of an answer, and citations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from dragoman.dialects.anthropic.tool_search import found_content
from dragoman.ir import ServerCall, ServerKind, ServerResult, Source, seal

Json = dict[str, Any]

KINDS: frozenset[ServerKind] = frozenset({"web_search", "web_fetch", "code_execution", "tool_search", "mcp"})

#: Put before a call id (`toolu_…`), this gives `srvtoolu_…`, as Anthropic's ids of server tool calls begin.
PREFIX = "srv"

#: The text of a fetched page: Google reads pages and does not return their text.
PAGE_NOT_SHOWN = "(The page was read where the model runs; its text is not passed on.)"

#: Our error -> Anthropic's error code; any other error becomes `unavailable`.
_CODES: dict[ServerKind, dict[str, str]] = {
    "web_search": {
        code: code
        for code in ("max_uses_exceeded", "too_many_requests", "query_too_long", "invalid_tool_input")
    },
    "web_fetch": {
        "error": "url_not_accessible",
        "paywall": "url_not_accessible",
        "unsafe": "url_not_allowed",
        **{code: code for code in ("max_uses_exceeded", "too_many_requests", "url_not_allowed")},
    },
    "code_execution": {"timeout": "execution_time_exceeded", "too_many_requests": "too_many_requests"},
}


def call_block(call: ServerCall) -> Json:
    if call.kind == "mcp":
        args = msgspec.Raw(call.args)
        return {
            "type": "mcp_tool_use",
            "id": call.id,
            "name": call.name,
            "server_name": call.label,
            "input": args,
        }
    name = call.name if call.kind == "tool_search" else call.kind
    return {"type": "server_tool_use", "id": PREFIX + call.id, "name": name, "input": _input(call)}


def result_block(result: ServerResult, call: ServerCall | None) -> Json:
    """Encode a result.

    The signature of `call`, which Google wants back, goes into `encrypted_content` of the first search hit.
    """
    prefix = "" if result.kind == "mcp" else PREFIX
    block = {"type": f"{result.kind}_tool_result", "tool_use_id": prefix + result.call_id}
    return {**block, **_RESULTS[result.kind](result, call)}


def citations(sources: Iterable[Source]) -> list[Json]:
    """Encode sources as citations; `cited_text` is mostly empty, because Google rarely returns it."""
    return [
        {
            "type": "web_search_result_location",
            "url": source.url,
            "title": source.title or None,
            "cited_text": source.text,
            "encrypted_index": "",
        }
        for source in sources
    ]


def _input(call: ServerCall) -> Any:
    args: Json = msgspec.json.decode(call.args)
    match call.kind:
        case "web_search" if "queries" in args:
            return {"query": "; ".join(args["queries"])}
        case "web_fetch" if "urls" in args:
            return {"url": " ".join(args["urls"])}
    return args


def _search(result: ServerResult, call: ServerCall | None) -> Json:
    if result.error:
        return _failed("web_search", result.error)
    carried = seal(call.signature, call.id) if call is not None and call.signature is not None else ""
    hits = [
        {
            "type": "web_search_result",
            "url": source.url,
            "title": source.title or source.url,
            "encrypted_content": "" if place else carried,
            "page_age": None,
        }
        for place, source in enumerate(result.sources)
    ]
    return {"content": hits}


def _fetch(result: ServerResult, _call: ServerCall | None) -> Json:
    page = next(iter(result.sources), Source(url="", error="unavailable"))
    error = result.error or page.error
    if error:
        return _failed("web_fetch", error)
    source = {"type": "text", "media_type": "text/plain", "data": page.text or PAGE_NOT_SHOWN}
    document = {"type": "document", "source": source, "title": page.title or None, "citations": None}
    return {
        "content": {"type": "web_fetch_result", "url": page.url, "content": document, "retrieved_at": None}
    }


def _code(result: ServerResult, _call: ServerCall | None) -> Json:
    """Encode the result of a program; a program that ran and failed is a result, not an error."""
    if result.error not in ("", "failed"):
        return _failed("code_execution", result.error)
    failed = bool(result.error)
    ran = {
        "type": "code_execution_result",
        "stdout": "" if failed else result.output,
        "stderr": result.output if failed else "",
        "return_code": int(failed),
        "content": [],
    }
    return {"content": ran}


def _found(result: ServerResult, _call: ServerCall | None) -> Json:
    return {"content": found_content(result)}


def _mcp(result: ServerResult, _call: ServerCall | None) -> Json:
    text = {"type": "text", "text": result.output or result.error}
    return {"is_error": bool(result.error), "content": [text]}


def _failed(kind: ServerKind, error: str) -> Json:
    code = _CODES[kind].get(error, "unavailable")
    return {"content": {"type": f"{kind}_tool_result_error", "error_code": code}}


_RESULTS: dict[ServerKind, Callable[[ServerResult, ServerCall | None], Json]] = {
    "web_search": _search,
    "web_fetch": _fetch,
    "code_execution": _code,
    "tool_search": _found,
    "mcp": _mcp,
}
