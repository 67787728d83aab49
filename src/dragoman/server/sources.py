"""The providers of gateway tools, in order of precedence: the first one to offer a name wins."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from dragoman.config import Config
from dragoman.dialects.base import Target
from dragoman.server.own import ToolProvider
from dragoman.server.session_source import SessionToolProvider
from dragoman.server.tool_search import ToolSearchProvider
from dragoman.server.unasked import CompatibilityFilter
from dragoman.store import Store


def open_tool_providers(
    config: Config, store: Store, key_hashes: tuple[str, ...], target_of: Callable[[str], Target]
) -> tuple[ToolProvider, ...]:
    """Return the providers that the settings enable.

    Session tools and tool search are always available. Profiles and client-requested MCP servers are imported
    only if they are configured. Tool search is last, because it may search the tools that other providers
    offer.
    """
    if not config.enable_tool_calling:
        return ()
    sessions = CompatibilityFilter(SessionToolProvider(store.session_tools, config.sessions), target_of)
    sources: list[ToolProvider] = [sessions]
    asked_for = any(server.requests and server.enabled for server in config.mcp.servers.values())
    if config.profiles or asked_for:
        workshop = import_module("dragoman.server.workshop").Workshop(config, Path(config.home))
    if asked_for:
        sources.append(import_module("dragoman.server.requested").Requested(config, workshop))
    if config.profiles:
        open_profiles = import_module("dragoman.server.tool_profiles").open_profiles
        sources.append(CompatibilityFilter(open_profiles(config, workshop, key_hashes), target_of))
    return (*sources, ToolSearchProvider(config.tools.search_above))
