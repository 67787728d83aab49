"""All settings, with their defaults and the reason for each."""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman.config.kinds import MIB, Count, Name, Seconds, Wait
from dragoman.config.limits import LimitsConfig
from dragoman.config.observe import ObserveConfig
from dragoman.config.profiles import Profile, ProfileName
from dragoman.config.server import ServerConfig
from dragoman.config.tools import AgentConfig, McpConfig, ToolsConfig


class UpstreamConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    kind: Literal["auto", "gemini", "vertex", "emulator"] = "auto"  # auto: a key or a project decides
    api_key: str = ""
    api_keys: tuple[str, ...] = ()  # several: a conversation stays with one, a refused one rests
    base_url: str = ""  # empty: Google's own
    api_version: str = ""  # empty: v1beta on AI Studio, v1beta1 on Vertex
    project: str = ""
    location: str = "global"
    connect_timeout_s: Seconds = 10.0
    idle_timeout_s: Seconds = 300.0  # Gemini may think for minutes without a byte (pain E4)
    total_timeout_s: Seconds = 3600.0  # of one client request, all attempts and waits together
    max_attempts: Count = 3  # of one client request, first one included
    max_wait_s: Wait = 60.0  # of one client request, all waits together

    @property
    def all_keys(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(key for key in (self.api_key, *self.api_keys) if key))


class ModelsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Gemini models for the model families of other vendors; aliases, because dated ids expire (pain M1)."""

    haiku: Name = "gemini-flash-lite-latest"
    sonnet: Name = "gemini-flash-latest"
    opus: Name = "gemini-pro-latest"
    default: Name = "gemini-flash-latest"
    fallbacks: dict[
        Name, tuple[Name, ...]
    ] = {}  # who stands in, in order, when a model is gone, spent or too busy
    rules: dict[Name, Name] = {}  # exact name or a word in it -> model; asked before the families


class StoreConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    url: str = ""  # redis://…, rediss://… or redis+sentinel://…, for several machines; empty: a file in the state folder
    max_bytes: Count = 256 * MIB  # of the file; a Redis is bounded by its own settings


class SessionsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Session tools: tools that the gateway declares and whose results an external caller supplies."""

    follow_up_wait_s: Wait = 20.0  # how long a request waits for missing results before it is told 409


class MediaConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Files that a request refers to by URL.

    Google receives the URL unless the gateway fetches the file (pain J4).
    """

    fetch: bool = False  # false: the gateway fetches nothing that a caller names (pain Q9)
    max_bytes: Count = 20 * MIB  # of all files of one request: Google takes little more inside a request
    max_files: Count = 32  # of one request
    timeout_s: Seconds = 15.0  # of all of them, for the client hears nothing meanwhile


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    server: ServerConfig = ServerConfig()
    upstream: UpstreamConfig = UpstreamConfig()
    models: ModelsConfig = ModelsConfig()
    store: StoreConfig = StoreConfig()
    sessions: SessionsConfig = SessionsConfig()
    media: MediaConfig = MediaConfig()
    tools: ToolsConfig = ToolsConfig()
    agent: AgentConfig = AgentConfig()
    mcp: McpConfig = McpConfig()
    limits: LimitsConfig = LimitsConfig()
    observe: ObserveConfig = ObserveConfig()
    profiles: dict[ProfileName, Profile] = {}  # tools that the gateway runs itself, and for whom
    strict_tool_validation: bool = False  # true: mend nothing, make the model try again (extra `strict`)
    enable_tool_calling: bool = True
    state_retention_minutes: Count = 7 * 24 * 60  # conversations are resumed days later (pain A11)
    home: str = ""  # DRAGOMAN_HOME; empty: the user's data folder

    @property
    def backend(self) -> Literal["gemini", "vertex", "emulator"]:
        """Return the upstream that the settings select."""
        if self.upstream.kind != "auto":
            return self.upstream.kind
        if self.upstream.all_keys or self.upstream.base_url:
            return "gemini"
        return "vertex" if self.upstream.project else "emulator"
