"""Decode tools of the type `mcp`, and remove credentials from them before they are stored or repeated."""

from __future__ import annotations

from typing import Any

from dragoman.dialects.openai_responses.wire import Approval, Filter, WireTool
from dragoman.errors import InvalidRequest
from dragoman.ir import ANY_TOOL, RemoteMcpServer, ToolFilter

#: Prefix of the ids of approval requests.
APPROVAL = "mcpr_"

_REDACTED = "<redacted>"


def read_remote(wire: WireTool, where: str) -> RemoteMcpServer:
    """Decode an MCP server; raise `InvalidRequest` for OpenAI's connectors and tunnels."""
    if not wire.server_label:
        raise InvalidRequest("an MCP server needs a server_label", where=where)
    if wire.connector_id or wire.tunnel_id:
        raise InvalidRequest("connectors and tunnels are OpenAI's own: use a server_url", where=where)
    headers = dict(wire.headers or {})
    if wire.authorization:
        headers["Authorization"] = f"Bearer {wire.authorization}"
    asks, trusts = _approval(wire.require_approval, f"{where}.require_approval")
    return RemoteMcpServer(
        label=wire.server_label,
        url=wire.server_url or "",
        where=where,
        headers=tuple(headers.items()),
        allowed=_filter(wire.allowed_tools) or ANY_TOOL,
        ask_approval=asks,
        skip_approval=trusts,
        deferred=ANY_TOOL if wire.defer_loading else None,
    )


def _approval(wire: str | Approval | None, where: str) -> tuple[ToolFilter | None, ToolFilter | None]:
    """Return the tools that need approval and those that do not; by default, all need it."""
    match wire:
        case None | "always":
            return ANY_TOOL, None
        case "never":
            return None, ANY_TOOL
        case Approval():
            return _filter(wire.always), _filter(wire.never)
    raise InvalidRequest(f"{wire!r} is not one of always, never", where=where)


def _filter(wire: list[str] | Filter | None) -> ToolFilter | None:
    if wire is None:
        return None
    if isinstance(wire, list):
        return ToolFilter(names=tuple(wire))
    names = None if wire.tool_names is None else tuple(wire.tool_names)
    return ToolFilter(names=names, read_only=bool(wire.read_only))


def bare_id(identity: str | None) -> str:
    """Return the call id in the id of an approval request."""
    return (identity or "").removeprefix(APPROVAL)


def without_credentials(tool: Any) -> Any:
    """Return a tool definition as it may be stored with a session: without credentials."""
    if not isinstance(tool, dict) or tool.get("type") != "mcp":
        return tool
    return {name: value for name, value in tool.items() if name not in ("authorization", "headers")}


def without_secrets(tool: dict[str, Any]) -> dict[str, Any]:
    """Return a tool definition as the answer repeats it: without `authorization`, with redacted headers."""
    shown = {name: value for name, value in tool.items() if name != "authorization"}
    if isinstance(shown.get("headers"), dict):
        shown["headers"] = dict.fromkeys(shown["headers"], _REDACTED)
    return shown
