"""The providers of gateway tools, in order of precedence: the first one to offer a name wins.

`CompatibilityFilter` wraps providers whose tools the client did not ask for. It withholds tools that would make Google
reject the request.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import msgspec

from dragoman.config import Config
from dragoman.dialects import gemini
from dragoman.dialects.base import Target
from dragoman.gateway.gateway_tools.protocol import ToolOffer, ToolProvider, ToolRequest
from dragoman.gateway.gateway_tools.search import ToolSearchProvider
from dragoman.gateway.gateway_tools.sessions import SessionToolProvider
from dragoman.ir import Request
from dragoman.notes import Note
from dragoman.store import Store

_MIME_FIELD = "generationConfig.responseMimeType"
_SERVER_SIDE_FIELD = "toolConfig.includeServerSideToolInvocations"
_TEXT_TYPES = ("", "text/plain")

#: Server tools that the client answers like functions, so Google accepts them beside functions.
_CLIENT_RUN_TOOLS = frozenset({"computerUse"})


class CompatibilityFilter:
    """Wrap a provider, and withhold its tools from requests that Google would reject because of them.

    JSON output and server tools are checked only in requests without functions: where the client declares
    some itself, Google's decision does not depend on additional ones. The results of a suspended answer are
    delivered even if tools are withheld.
    """

    def __init__(self, provider: ToolProvider, target_of: Callable[[str], Target]) -> None:
        self._provider = provider
        self._target_of = target_of

    async def offer(self, tool_request: ToolRequest) -> ToolOffer | None:
        offer = await self._provider.offer(tool_request)
        if offer is None or not offer.tools:
            return offer
        return restrict_offer(offer, tool_request.request, self._target_of(tool_request.request.model))

    async def close(self) -> None:
        await self._provider.close()


def restrict_offer(offer: ToolOffer, request: Request, target: Target) -> ToolOffer:
    """Return the offer reduced to what the model accepts beside the features that the client uses."""
    native = dict(request.native)
    built_in = offer.keep_client_tools and not request.tools and _has_server_tools(request)
    why = _rejection_reason(request, native, target, built_in=built_in)
    if why:
        note = Note("withheld", "tools", f"the gateway's own: {why}")
        return msgspec.structs.replace(offer, tools=(), tool_choice=None, notes=(*offer.notes, note))
    if _wants_json(request, native) and offer.tool_choice is not None and offer.tool_choice.mode == "any":
        # JSON output and a forced call exclude each other.
        offer = msgspec.structs.replace(offer, tool_choice=None)
    if built_in and _SERVER_SIDE_FIELD not in native:
        offer = msgspec.structs.replace(offer, native_fields=((_SERVER_SIDE_FIELD, b"true"),))
    return offer


def _rejection_reason(request: Request, native: dict[str, bytes], target: Target, *, built_in: bool) -> str:
    """Return the reason why Google would reject additional functions, or ""."""
    if "cachedContent" in native:
        return "a cache brings its tools, and Google takes no others beside it"
    profile = gemini.profile_of(target.model)
    if _wants_json(request, native) and not request.tools and not profile.json_with_functions:
        return "this model takes no functions beside JSON output"
    if built_in and not gemini.can_mix(target):
        return "this model takes no functions beside Google's own tools"
    return ""


def _wants_json(request: Request, native: dict[str, bytes]) -> bool:
    mime = msgspec.json.decode(native.get(_MIME_FIELD, b'""'))
    return request.output is not None or (mime or "") not in _TEXT_TYPES


def _has_server_tools(request: Request) -> bool:
    """Return whether a Gemini request declares server tools; the encoder adapts those of other dialects."""
    tools = (msgspec.json.decode(raw) for place, raw in request.native if place == "tools")
    return any(set(tool) - _CLIENT_RUN_TOOLS for tool in tools)


def open_tool_providers(
    config: Config, store: Store, key_hashes: tuple[str, ...], target_of: Callable[[str], Target]
) -> tuple[ToolProvider, ...]:
    """Return the providers that the settings enable.

    Session tools and tool search are always available. Profiles and MCP servers of clients are imported only if
    they are configured, because their imports are slow. Tool search is last, because it may search the tools that
    other providers offer.
    """
    if not config.enable_tool_calling:
        return ()
    sessions = CompatibilityFilter(SessionToolProvider(store.session_tools, config.sessions), target_of)
    providers: list[ToolProvider] = [sessions]
    client_servers = any(server.requests and server.enabled for server in config.mcp.servers.values())
    if config.profiles or client_servers:
        resources = import_module("dragoman.gateway.gateway_tools.resources").ToolResources(
            config, Path(config.home)
        )
    if client_servers:
        providers.append(
            import_module("dragoman.gateway.gateway_tools.client_mcp").ClientMcpServers(config, resources)
        )
    if config.profiles:
        open_profiles = import_module("dragoman.gateway.gateway_tools.profiles").open_profiles
        providers.append(CompatibilityFilter(open_profiles(config, resources, key_hashes), target_of))
    return (*providers, ToolSearchProvider(config.tools.search_above))
