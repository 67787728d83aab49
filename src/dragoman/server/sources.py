"""The providers of gateway tools, in order of precedence: the first one to offer a name wins."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from dragoman.config import Config
from dragoman.dialects.base import Target
from dragoman.server.own import Source
from dragoman.server.session_source import SessionSource
from dragoman.server.tool_search import ToolSearch
from dragoman.server.unasked import Unasked
from dragoman.store import Store


def open_sources(
    config: Config, store: Store, key_hashes: tuple[str, ...], target_of: Callable[[str], Target]
) -> tuple[Source, ...]:
    """Return the providers that the settings enable.

    Session tools and tool search are always available. Profiles and client-requested MCP servers are imported
    only if they are configured. Tool search is last, because it may search the tools that other providers
    offer.
    """
    if not config.enable_tool_calling:
        return ()
    sessions = Unasked(SessionSource(store.session_tools, config.sessions), target_of)
    sources: list[Source] = [sessions]
    asked_for = any(server.requests and server.enabled for server in config.mcp.servers.values())
    if config.profiles or asked_for:
        workshop = import_module("dragoman.server.workshop").Workshop(config, Path(config.home))
    if asked_for:
        sources.append(import_module("dragoman.server.requested").Requested(config, workshop))
    if config.profiles:
        open_profiles = import_module("dragoman.server.tool_profiles").open_profiles
        sources.append(Unasked(open_profiles(config, workshop, key_hashes), target_of))
    return (*sources, ToolSearch(config.tools.search_above))
