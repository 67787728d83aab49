"""Settings of the tool runtime, the agent, MCP servers and profiles; each has its reason beside it.

A profile selects the tools that the gateway runs itself, for which callers, and within which limits.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from dragoman.errors import ConfigError

Count = Annotated[int, Meta(ge=1)]
OptionalLimit = Annotated[int, Meta(ge=0)]
Seconds = Annotated[float, Meta(gt=0)]
ServerName = Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,40}$")]
Money = Annotated[float, Meta(ge=0)]


class ToolsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    folder: str = ""  # Python files with tools of your own; empty: the folder tools in DRAGOMAN_HOME
    timeout_s: Seconds = 30.0  # of one call, unless the tool sets its own
    max_output_bytes: Count = 256 * 1024  # of one result; more would displace the conversation
    allow: tuple[str, ...] = ()  # tool(pattern) rules for calls that need no confirmation
    ask: tuple[str, ...] = ()  # rules for calls that need confirmation each time
    deny: tuple[str, ...] = ()  # rules that take precedence over all others
    search_above: OptionalLimit = 0  # with more tools, the model searches for the rest; 0: declare all
    audit: Literal["digest", "full", "off"] = "digest"  # full records arguments, which may be secret
    run_command: bool = False  # allow the model to run programs
    isolation: Literal["auto", "required", "off"] = "auto"  # of commands, if bubblewrap is installed
    command_network: bool = False  # isolated commands may use the network
    command_env: tuple[str, ...] = ()  # environment variables for commands besides PATH, HOME and the like


class AgentConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    model: str = ""  # empty: models.default
    max_steps: Count = 50  # model answers in one turn
    max_tokens: OptionalLimit = 0  # of one session, 0: no limit
    max_cost_usd: Money = 0.0  # of one session, 0: no limit


class McpServer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One MCP server: a command that uses stdio, or the URL of a running server."""

    command: tuple[str, ...] = ()
    url: str = ""
    env: dict[str, str] = {}
    headers: dict[str, str] = {}
    timeout_s: Seconds = 60.0  # of one call; these tools often use a network
    enabled: bool = True
    requests: bool = False  # clients may use this server in their requests


class McpConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    servers: dict[ServerName, McpServer] = {}  # MCP servers whose tools the agent and profiles may use


MIB = 1024 * 1024

SelectorKind = Literal["mcp", "fs", "python"]
ProfileName = Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,40}$")]

_SELECTOR = re.compile(
    r"fs:(?P<file_tool>[\w*]+)|(?P<kind>mcp|python):(?P<source>[\w.-]+)(?:/(?P<tool>[^\s/]+))?", re.ASCII
)
_KEY_HASH = re.compile(r"sha256:[0-9a-f]{16,64}")
_SELECTOR_SYNTAX = (
    "write mcp:SERVER, mcp:SERVER/TOOL, fs:TOOL, python:FILE or python:FILE/TOOL; * stands for anything"
)


class ToolSelector(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of `tools`: the server or file, and a pattern for the names of its tools."""

    kind: SelectorKind
    source: str = ""  # a server or a file of Python tools
    tool: str = "*"

    def matches(self, tool: str) -> bool:
        return fnmatchcase(tool, self.tool)


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tools for the requests that meet all given conditions.

    A profile without conditions applies to every authenticated caller.
    """

    tools: tuple[str, ...] = ()  # mcp:github, mcp:github/get_*, fs:read_file, python:my_tools
    keys: tuple[str, ...] = ()  # callers: sha256: and at least 16 digits of the hash of their gateway key
    sessions: tuple[str, ...] = ()  # patterns for session names of clients
    models: tuple[str, ...] = ()  # patterns for the model names that clients request
    only_beside_tools: bool = False  # skip requests without tools, such as the side requests of agents
    root: str = ""  # the folder that the file tools may use
    allow: tuple[str, ...] = ()  # tool(pattern) rules; required for file tools that write
    deny: tuple[str, ...] = ()  # rules that take precedence over all others
    max_rounds: Count = 16  # per answer: how often the model may return with calls
    max_seconds: Seconds = 300.0  # per answer, from its start
    max_output_bytes: Count = 4 * MIB  # per answer, all results together

    @property
    def selectors(self) -> tuple[ToolSelector, ...]:
        return tuple(parse_selector(text, "") for text in self.tools)


def parse_selector(text: str, where: str) -> ToolSelector:
    found = _SELECTOR.fullmatch(text)
    if found is None:
        raise ConfigError(f"{text!r} names no tools\n{_SELECTOR_SYNTAX}", where=where)
    if found["file_tool"]:
        return ToolSelector(kind="fs", tool=found["file_tool"])
    kind: SelectorKind = "mcp" if found["kind"] == "mcp" else "python"
    return ToolSelector(kind=kind, source=found["source"], tool=found["tool"] or "*")


def check_profile(profile: Profile, servers: Mapping[str, McpServer], where: str) -> None:
    """Check what can be checked without I/O; rules and files are checked when the gateway starts."""
    if not profile.tools:
        raise ConfigError(f"a profile needs tools\n{_SELECTOR_SYNTAX}", where=f"{where}.tools")
    for index, text in enumerate(profile.tools):
        place = f"{where}.tools[{index}]"
        selector = parse_selector(text, place)
        if selector.kind == "mcp" and selector.source not in servers:
            raise ConfigError(_unknown_server_message(selector.source, servers), where=place)
        if selector.kind == "fs":
            _check_root(profile.root, f"{where}.root")
    for index, key in enumerate(profile.keys):
        if not _KEY_HASH.fullmatch(key):
            hint = 'a profile holds no keys: printf %s "$KEY" | sha256sum gives the digits'
            raise ConfigError(f"must be sha256: and 16 to 64 digits\n{hint}", where=f"{where}.keys[{index}]")


def _check_root(root: str, where: str) -> None:
    if not root:
        raise ConfigError("file tools need a root: the folder they may see", where=where)
    if not os.path.isabs(root):
        raise ConfigError(f"must be a whole path, not {root!r}", where=where)


def _unknown_server_message(name: str, servers: Iterable[str]) -> str:
    known = ", ".join(sorted(servers)) or "none"
    return f"there is no MCP server {name!r} in mcp.servers (there are: {known})"
