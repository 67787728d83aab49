"""Decode `tool_choice`."""

from __future__ import annotations

from typing import Literal

from dragoman import jsontext
from dragoman.dialects.openai_responses.builtin import BUILT_IN
from dragoman.dialects.openai_responses.hosted import force_chosen, is_hosted
from dragoman.dialects.openai_responses.tool_search import search_tool
from dragoman.dialects.openai_responses.tools import ToolSet, find_name, names_in
from dragoman.dialects.openai_responses.wire import WireChoice, decode_choice
from dragoman.errors import InvalidRequest
from dragoman.ir import ServerTool, ToolChoice, mcp_tool_name

_WHERE = "tool_choice"
_MODES: dict[str, Literal["auto", "any", "none", "validated"]] = {
    "auto": "auto",
    "none": "none",
    "required": "any",
    "validated": "validated",
}

#: Server tools of OpenAI without an equivalent here: choosing one has no effect.
_UNSUPPORTED = frozenset({"file_search", "image_generation", "programmatic_tool_calling"})


def decode_tool_choice(raw: bytes, tool_set: ToolSet, *, parallel: bool) -> ToolChoice:
    """Decode the choice for function tools; raise `InvalidRequest` if it is not understood.

    Choosing a server tool leaves functions at `auto`; see `chosen_server_tools`.
    """
    wire = jsontext.decode(decode_choice, raw or b"null", _WHERE)
    if wire is None:
        return ToolChoice(parallel=parallel)
    if isinstance(wire, str):
        return ToolChoice(mode=_mode(wire), parallel=parallel)
    if wire.type == "allowed_tools":
        allowed = wire.allowed_tools or wire
        names = tuple(name for tool in allowed.tools or () for name in _chosen(tool, tool_set))
        mode = _mode(allowed.mode or "auto") if names else "none"
        return ToolChoice(mode=mode, names=names, parallel=parallel)
    names = _chosen(wire, tool_set)
    return ToolChoice(mode="any" if names else "auto", names=names, parallel=parallel)


def chosen_server_tools(raw: bytes, tool_set: ToolSet) -> tuple[ServerTool, ...]:
    """Return the tools to run for the client that the choice allows, and the search for deferred tools.

    The search stays with any choice: without it, deferred tools would be shown to the model.
    """
    chosen = force_chosen(tool_set.server_tools, jsontext.decode(decode_choice, raw or b"null", _WHERE))
    return chosen + searches_of(tool_set)


def searches_of(tool_set: ToolSet) -> tuple[ServerTool, ...]:
    """Return the server-side search for deferred tools, if the request has both."""
    return (search_tool(tool_set.searched),) if tool_set.searched and tool_set.has_deferred else ()


def _mode(word: str) -> Literal["auto", "any", "none", "validated"]:
    mode = _MODES.get(word)
    if mode is None:
        raise InvalidRequest(f"{word!r} is not one of {', '.join(_MODES)}", where=_WHERE)
    return mode


def _chosen(wire: WireChoice, tool_set: ToolSet) -> tuple[str, ...]:
    """Return the names of the chosen functions; none for a server tool."""
    kind, name = wire.type, (wire.function or wire).name
    if kind in ("function", "custom") and name:
        return (find_name(tool_set, name, wire.namespace),)
    if kind == "namespace" and name:
        return names_in(tool_set, name)
    if kind == "mcp" and any(remote.label == wire.server_label for remote in tool_set.remotes):
        return (mcp_tool_name(wire.server_label or "", name or "*"),)
    if kind in BUILT_IN:
        return (kind,) if kind in tool_set.client_tools else ()
    if is_hosted(kind) or kind in _UNSUPPORTED or kind.startswith("computer"):
        return ()
    raise InvalidRequest(f"a choice of type {kind!r} is not understood", where=f"{_WHERE}.type")
