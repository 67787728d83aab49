"""All settings, with their defaults and the reason for each.

`config.template` copies the comment beside a setting into the settings file, so each of them is written for users.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from dragoman.config.tools import (
    MIB,
    AgentConfig,
    Count,
    McpConfig,
    Money,
    OptionalLimit,
    Profile,
    ProfileName,
    ToolsConfig,
)

KIB = 1024

Port = Annotated[int, Meta(ge=0, le=65535)]  # 0: any free one
Size = Annotated[int, Meta(ge=0)]
Seconds = Annotated[float, Meta(gt=0, le=86400)]
Wait = Annotated[float, Meta(ge=0, le=86400)]
Name = Annotated[str, Meta(min_length=1)]
QuotaWindow = Literal["minute", "hour", "day", "month"]


class QuotaConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits for one time window of the UTC calendar; 0 means no limit."""

    requests: OptionalLimit = 0
    tokens: OptionalLimit = 0  # input and output tokens together
    usd: Money = 0.0


class PriceConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """US dollars per million tokens."""

    input: Money
    output: Money
    cached: Money | None = None  # unset: same as input


class LimitsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    key: dict[QuotaWindow, QuotaConfig] = {}  # limits of each gateway key
    session: dict[QuotaWindow, QuotaConfig] = {}  # limits of each conversation
    repeated_calls: OptionalLimit = 0  # equal calls with equal results per conversation; 0: no limit
    prices: dict[Name, PriceConfig] = {}  # override the built-in prices, which may be outdated


class ObserveConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    log: Literal["off", "errors", "all"] = "errors"  # which requests are logged; bodies never are
    log_format: Literal["text", "json"] = "text"  # json: one JSON object per line, for log collectors
    ledger: bool = True  # for `dragoman usage` and the dashboard; contains no prompts or answers
    traces: bool = False  # OpenTelemetry; the standard variables OTEL_EXPORTER_OTLP_… set the destination
    capture: Literal["off", "errors", "all"] = "off"  # requests whose bodies are stored
    capture_body_bytes: Count = MIB  # per body; longer ones are cut
    capture_bytes: Count = 256 * MIB  # of all captures; the oldest are deleted first


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits apply to one worker process, not to all of them together."""

    host: Name = "127.0.0.1"  # only this machine can connect by default (known problem Q10)
    port: Port = 8377
    workers: Count = 1  # processes that share the port and the state; use one per CPU core
    no_auth: bool = False  # accept requests without a key; only possible on loopback
    keys: tuple[str, ...] = ()  # gateway keys; empty: one is generated at the first start
    admin_keys: tuple[str, ...] = ()  # gateway keys for the admin paths, besides the generated key
    google_callers: Literal["loopback", "always", "never"] = "loopback"  # whose Google keys are accepted
    allowed_hosts: tuple[
        str, ...
    ] = ()  # names and addresses clients may use; needed when `host` is not loopback (known problem Q8)
    max_connections: Count = (
        4096  # idle ones count; they make room, else whoever comes later waits at the door
    )
    max_requests: Count = 2000  # at once; more are refused before their bodies are read
    max_body_bytes: Count = 64 * MIB  # long sessions with screenshots (known problem J5)
    max_inflight_bytes: Count = 256 * MIB  # bodies of all running requests; in memory about four times that
    cache_bytes: Size = 96 * MIB  # all caches of a worker together, in memory; 0 disables them
    max_header_bytes: Count = 64 * KIB  # of one request, all together; never less than 8 KiB
    body_idle_s: Seconds = 30.0  # a body that has stopped coming is not waited for longer
    reader_idle_s: Seconds = 300.0  # a client that takes nothing of its answer for so long is gone
    keep_alive_s: Seconds = 120.0  # of an idle connection; longer than clients and balancers keep theirs
    ping_s: Seconds = 15.0  # Claude Code shows a stall banner at 20 s (known problem E4)
    drain_s: Wait = 0.0  # after a stop signal: still open, but not ready, until balancers have noticed
    shutdown_s: Seconds = 30.0  # how long running streams may go on after that


class UpstreamConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    kind: Literal["auto", "gemini", "vertex", "emulator"] = "auto"  # auto: by key or project
    api_key: str = ""
    api_keys: tuple[str, ...] = ()  # several keys: a conversation keeps one, a refused one is paused
    base_url: str = ""  # empty: Google's URL
    api_version: str = ""  # empty: v1beta on AI Studio, v1beta1 on Vertex
    project: str = ""
    location: str = "global"
    connect_timeout_s: Seconds = 10.0
    idle_timeout_s: Seconds = 300.0  # Gemini may think for minutes without sending a byte (known problem E4)
    total_timeout_s: Seconds = 3600.0  # of one client request, including all attempts and waits
    max_attempts: Count = 3  # of one client request, including the first
    max_wait_s: Wait = 60.0  # of one client request, all waits between attempts together

    @property
    def all_keys(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(key for key in (self.api_key, *self.api_keys) if key))


class ModelsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Gemini models for the model families of other vendors; aliases, because dated ids expire (known problem M1)."""

    haiku: Name = "gemini-flash-lite-latest"
    sonnet: Name = "gemini-flash-latest"
    opus: Name = "gemini-pro-latest"
    default: Name = "gemini-flash-latest"
    fallbacks: dict[Name, tuple[Name, ...]] = {}  # in order; used when a model is gone, out of quota or busy
    rules: dict[Name, Name] = {}  # exact name, or a word in it -> model; applied before the families


class StoreConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    url: str = ""  # redis://…, rediss://… or redis+sentinel://…, for several machines; empty: a file in the state folder
    max_bytes: Count = 256 * MIB  # of the file; Redis limits its memory with its own settings


class SessionsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Session tools: tools that the gateway declares and whose results an external caller supplies."""

    follow_up_wait_s: Wait = 20.0  # how long a request waits for missing results before it gets a 409


class MediaConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Files that a request refers to by URL.

    Google receives the URL unless the gateway fetches the file (known problem J4).
    """

    fetch: bool = False  # fetch files from URLs in requests (known problem Q9)
    max_bytes: Count = 20 * MIB  # of all files of one request; Google accepts little more inline
    max_files: Count = 32  # per request
    timeout_s: Seconds = 15.0  # for all files; the client receives nothing meanwhile


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
    profiles: dict[ProfileName, Profile] = {}  # tools that the gateway runs, and for which callers
    strict_tool_validation: bool = False  # refuse invalid arguments, repair none (extra `strict`)
    enable_tool_calling: bool = True
    state_retention_minutes: Count = 7 * 24 * 60  # conversations are resumed days later (known problem A11)
    home: str = ""  # DRAGOMAN_HOME; empty: the user's data folder

    @property
    def backend(self) -> Literal["gemini", "vertex", "emulator"]:
        """Return the upstream that the settings select."""
        if self.upstream.kind != "auto":
            return self.upstream.kind
        if self.upstream.all_keys or self.upstream.base_url:
            return "gemini"
        return "vertex" if self.upstream.project else "emulator"
