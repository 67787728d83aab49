"""Settings of the tool runtime, the agent and MCP servers; each has its reason beside it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Count = Annotated[int, msgspec.Meta(ge=1)]
Cap = Annotated[int, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]
ServerName = Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{1,40}$")]
Money = Annotated[float, msgspec.Meta(ge=0)]


class ToolsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    folder: str = ""  # Python files with tools of your own; empty: the folder tools in DRAGOMAN_HOME
    timeout_s: Seconds = 30.0  # of one call, unless the tool says otherwise
    max_output_bytes: Count = 256 * 1024  # of one result: more crowds out the conversation
    allow: tuple[str, ...] = ()  # tool(pattern) rules that need no question
    ask: tuple[str, ...] = ()  # rules that ask each time
    deny: tuple[str, ...] = ()  # rules that win over all others
    search_above: Cap = 0  # where there are more tools, the rest is found by a search; 0: all are declared
    audit: Literal["digest", "full", "off"] = "digest"  # full keeps arguments, which may be secret
    run_command: bool = False  # a model that runs programs must be asked for
    isolation: Literal["auto", "required", "off"] = "auto"  # of commands, by bubblewrap where it is there
    command_network: bool = False  # isolated commands reach the network
    command_env: tuple[str, ...] = ()  # variables commands get besides PATH, HOME and the like


class AgentConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    model: str = ""  # empty: models.default
    max_steps: Count = 50  # model answers in one turn
    max_tokens: Cap = 0  # of one session, 0: no limit
    max_cost_usd: Money = 0.0  # of one session, 0: no limit


class McpServer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One MCP server: a command that uses stdio, or the URL of a running server."""

    command: tuple[str, ...] = ()
    url: str = ""
    env: dict[str, str] = {}
    headers: dict[str, str] = {}
    timeout_s: Seconds = 60.0  # of one call: these work over a network more often than our own
    enabled: bool = True
    requests: bool = False  # clients may name it in their own requests


class McpConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    servers: dict[
        ServerName, McpServer
    ] = {}  # programs and addresses whose tools the agent and profiles may use
