"""Add a session's tools, tool config and results to a `GenerateContentRequest`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.tools.inject.context import Json, ToolContext, as_objects, find_key, get_field, with_field
from dragoman.tools.inject.history import with_results

_DECLARATIONS, _CALLING, _ALLOWED = "functionDeclarations", "functionCallingConfig", "allowedFunctionNames"
_SERVER_SIDE = "includeServerSideToolInvocations"

#: Executed by the client like functions, so Google accepts it together with them.
_LIKE_FUNCTIONS = ("computerUse", "computer_use")


def modify_request(body: Json, context: ToolContext) -> Json:
    """Return the request to send to Google; the same object if there is nothing to change.

    If the client and the session declare a function of the same name, the session's replaces the client's.
    """
    return with_results(_with_tools(body, context), context)


def _with_tools(body: Json, context: ToolContext) -> Json:
    if get_field(body, "cachedContent"):  # cached content has its own tools; Google rejects others beside it
        return body
    if not context.tools and not context.tool_config and context.keep_client_tools:
        return body
    own = {declaration["name"] for declaration in context.tools}
    client_tools = as_objects(get_field(body, "tools")) if context.keep_client_tools else []
    client_tools = [tool for tool in (_without(tool, own) for tool in client_tools) if tool]
    theirs = _names(client_tools)
    if context.tools and context.built_in == "drop":
        client_tools = [tool for tool in map(_functions_only, client_tools) if tool]
    tools = _joined(client_tools, context.tools)
    config = _config(body, context, theirs, tools)
    if tools == as_objects(get_field(body, "tools")) and config == (get_field(body, "toolConfig") or {}):
        return body
    return with_field(with_field(body, "tools", tools), "toolConfig", config)


def _without(tool: Json, names: set[str]) -> Json:
    """Return a client's tool without the functions of these names."""
    declared = as_objects(get_field(tool, _DECLARATIONS))
    left = [declaration for declaration in declared if declaration.get("name") not in names]
    return tool if left == declared else with_field(tool, _DECLARATIONS, left)


def _functions_only(tool: Json) -> Json:
    allowed = (find_key(tool, _DECLARATIONS), *_LIKE_FUNCTIONS)
    return {name: value for name, value in tool.items() if name in allowed}


def _joined(tools: list[Json], more: tuple[Json, ...]) -> list[Json]:
    """Add the session's functions to the client's first tool with functions, or as a new tool."""
    if not more:
        return tools
    for index, tool in enumerate(tools):
        declared = as_objects(get_field(tool, _DECLARATIONS))
        if declared:
            return [*tools[:index], with_field(tool, _DECLARATIONS, [*declared, *more]), *tools[index + 1 :]]
    return [*tools, {_DECLARATIONS: list(more)}]


def _config(body: Mapping[str, Any], context: ToolContext, theirs: list[str], tools: list[Json]) -> Json:
    config: Json = (get_field(body, "toolConfig") or {}) if context.keep_client_tools else {}
    for name, value in (context.tool_config or {}).items():
        config = with_field(config, name, value)
    names = _names(tools)
    calling = get_field(config, _CALLING)
    if calling:
        own = context.tool_config is not None and get_field(context.tool_config, _CALLING)
        calling = _calling(calling, names, [] if own else theirs)
        # A forced call applies to the question; once there are results, the model may answer with text.
        forced = own and context.pending_results and _mode(calling) == "ANY"
        config = with_field(config, _CALLING, None if forced or not names else calling)
    return _beside_built_in(config) if names and any(map(_is_built_in, tools)) else config


def _beside_built_in(config: Json) -> Json:
    """Set the flag that Google requires for functions beside built-in tools, and remove the mode AUTO.

    Google rejects AUTO in this combination; without a mode its default here is VALIDATED.
    """
    free = _mode(get_field(config, _CALLING) or {}) == "AUTO"
    return with_field(with_field(config, _CALLING, None) if free else config, _SERVER_SIDE, True)


def _is_built_in(tool: Json) -> bool:
    return _functions_only(tool) != tool


def _calling(calling: Json, declared: list[str], theirs: list[str]) -> Json:
    """Adapt a `functionCallingConfig`: only declared functions may be allowed.

    If none of the allowed functions is declared, the config is dropped. A client that forces a call (mode ANY) is
    restricted to its own functions.
    """
    allowed = get_field(calling, _ALLOWED) or []
    if allowed:
        left = [name for name in allowed if name in declared]
        if not left:
            return {}
        return calling if left == allowed else with_field(calling, _ALLOWED, left)
    return with_field(calling, _ALLOWED, theirs) if theirs and _mode(calling) == "ANY" else calling


def _mode(calling: Json) -> str:
    return str(calling.get("mode") or "").upper()


def _names(tools: list[Json]) -> list[str]:
    return [entry.get("name", "") for tool in tools for entry in as_objects(get_field(tool, _DECLARATIONS))]
