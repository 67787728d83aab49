"""Every setting there is, with its default and the reason for it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from dragoman.config.tools import AgentConfig, McpConfig, ToolsConfig

MIB = 1024 * 1024

Port = Annotated[int, Meta(ge=0, le=65535)]  # 0: any free one
Count = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0, le=86400)]
Wait = Annotated[float, Meta(ge=0, le=86400)]
Name = Annotated[str, Meta(min_length=1)]


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    host: Name = "127.0.0.1"  # nobody but this machine, unless asked (pain Q10)
    port: Port = 8377
    no_auth: bool = False  # loopback only; anything else is refused
    keys: tuple[str, ...] = ()  # gateway keys; empty: one is made at first start
    allowed_hosts: tuple[
        str, ...
    ] = ()  # names and addresses clients may use; needed when `host` is not loopback (pain Q8)
    max_body_bytes: Count = 64 * MIB  # long sessions with screenshots (pain J5)
    ping_s: Seconds = 15.0  # Claude Code shows a stall banner at 20 s (pain E4)
    shutdown_s: Seconds = 30.0  # how long running streams may go on after a stop signal


class UpstreamConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    kind: Literal["auto", "gemini", "vertex", "emulator"] = "auto"  # auto: a key or a project decides
    api_key: str = ""
    base_url: str = ""  # empty: Google's own
    api_version: str = ""  # empty: v1beta on AI Studio, v1beta1 on Vertex
    project: str = ""
    location: str = "global"
    connect_timeout_s: Seconds = 10.0
    idle_timeout_s: Seconds = 300.0  # Gemini may think for minutes without a byte (pain E4)
    total_timeout_s: Seconds = 3600.0
    max_attempts: Count = 3  # of one client request, first one included
    max_wait_s: Wait = 60.0  # of one client request, all waits together


class ModelsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Family rules for names that are not Gemini's; aliases, because dated ids die (pain M1)."""

    haiku: Name = "gemini-flash-lite-latest"
    sonnet: Name = "gemini-flash-latest"
    opus: Name = "gemini-pro-latest"
    default: Name = "gemini-flash-latest"
    rules: dict[Name, Name] = {}  # exact name or a word in it -> model; asked before the families


class StoreConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    max_bytes: Count = 256 * MIB


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    server: ServerConfig = ServerConfig()
    upstream: UpstreamConfig = UpstreamConfig()
    models: ModelsConfig = ModelsConfig()
    store: StoreConfig = StoreConfig()
    tools: ToolsConfig = ToolsConfig()
    agent: AgentConfig = AgentConfig()
    mcp: McpConfig = McpConfig()
    strict_tool_validation: bool = False  # false: mend what is safe; true: make the model try again
    enable_tool_calling: bool = True
    state_retention_minutes: Count = 7 * 24 * 60  # conversations are resumed days later (pain A11)
    home: str = ""  # DRAGOMAN_HOME; empty: the user's data folder

    @property
    def backend(self) -> Literal["gemini", "vertex", "emulator"]:
        """Which upstream the settings amount to."""
        if self.upstream.kind != "auto":
            return self.upstream.kind
        if self.upstream.api_key or self.upstream.base_url:
            return "gemini"
        return "vertex" if self.upstream.project else "emulator"
