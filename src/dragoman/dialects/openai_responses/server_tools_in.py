"""Decode items of server tools in the history: calls and results that this gateway or another service produced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from dragoman.ir import Part, ServerCall, ServerKind, ServerResult, Source

Json = dict[str, Any]


class _Address(msgspec.Struct):
    url: str = ""


class _Action(msgspec.Struct):
    type: str = ""
    query: str | None = None
    queries: list[str] | None = None
    url: str | None = None
    pattern: str | None = None
    sources: list[_Address] | None = None


class _Search(msgspec.Struct):
    id: str | None = None
    status: str | None = None
    action: _Action | None = None


class _Output(msgspec.Struct):
    logs: str = ""
    url: str = ""


class _Interpreted(msgspec.Struct):
    id: str | None = None
    status: str | None = None
    code: str | None = None
    outputs: list[_Output] | None = None


class _Mcp(msgspec.Struct):
    name: str
    id: str | None = None
    server_label: str | None = None
    arguments: str | None = None
    output: str | None = None
    error: Any = None


_decode_search = msgspec.json.Decoder(_Search).decode
_decode_interpreted = msgspec.json.Decoder(_Interpreted).decode
_decode_mcp = msgspec.json.Decoder(_Mcp).decode


def read_served(kind: str, raw: bytes) -> tuple[Part, ...] | None:
    """Decode an item to a call and its result; None if the item has an unknown form."""
    try:
        return _READERS[kind](raw)
    except msgspec.DecodeError:
        return None


def _search(raw: bytes) -> tuple[Part, ...]:
    item = _decode_search(raw)
    action = item.action or _Action()
    kind: ServerKind = "web_search" if action.type == "search" else "web_fetch"
    args: Json = {"queries": action.queries or ([action.query] if action.query else [])}
    if kind == "web_fetch":
        args = {"urls": [action.url] if action.url else []}
        if action.pattern:
            args["pattern"] = action.pattern
    sources = tuple(Source(url=source.url) for source in action.sources or ())
    return _pair(
        kind,
        _own_id(item.id, "ws_"),
        args,
        ServerResult(call_id="", kind=kind, sources=sources, error=_error(item.status)),
    )


def _interpreted(raw: bytes) -> tuple[Part, ...]:
    item = _decode_interpreted(raw)
    outputs = "".join(output.logs or output.url for output in item.outputs or ())
    result = ServerResult(call_id="", kind="code_execution", output=outputs, error=_error(item.status))
    return _pair("code_execution", _own_id(item.id, "ci_"), {"code": item.code or ""}, result)


def _mcp(raw: bytes) -> tuple[Part, ...]:
    item = _decode_mcp(raw)
    error = item.error if isinstance(item.error, str) else msgspec.json.encode(item.error).decode()
    result = ServerResult(
        call_id="", kind="mcp", output=item.output or "", error="" if item.error is None else error
    )
    call, server_result = _pair("mcp", _own_id(item.id, "mcp_"), {}, result)
    args = (item.arguments or "{}").encode()
    return (
        msgspec.structs.replace(call, name=item.name, label=item.server_label or "", args=_object(args)),
        server_result,
    )


def _pair(
    kind: ServerKind, identity: str, args: Json, result: ServerResult
) -> tuple[ServerCall, ServerResult]:
    call = ServerCall(id=identity, kind=kind, name=kind, args=msgspec.json.encode(args))
    return call, msgspec.structs.replace(result, call_id=identity)


def _own_id(identity: str | None, prefix: str) -> str:
    return (identity or "").removeprefix(prefix)


def _object(args: bytes) -> bytes:
    """Return the arguments; raise `msgspec.DecodeError` if they are not a JSON object."""
    msgspec.json.decode(args, type=Json)
    return args


def _error(status: str | None) -> str:
    return status if status in ("failed", "incomplete") else ""


_READERS: dict[str, Callable[[bytes], tuple[Part, ...]]] = {
    "web_search_call": _search,
    "code_interpreter_call": _interpreted,
    "mcp_call": _mcp,
}
