"""All settings, with their defaults and the reason for each.

`config.template` copies the comment beside a setting into the settings file, so each of them is written for users.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from dragoman.config.tools import AgentConfig, McpConfig, Profile, ProfileName, ToolsConfig

KIB = 1024
MIB = 1024 * 1024

Port = Annotated[int, Meta(ge=0, le=65535)]  # 0: any free one
Count = Annotated[int, Meta(ge=1)]
Size = Annotated[int, Meta(ge=0)]
Seconds = Annotated[float, Meta(gt=0, le=86400)]
Wait = Annotated[float, Meta(ge=0, le=86400)]
Name = Annotated[str, Meta(min_length=1)]


OptionalLimit = Annotated[int, msgspec.Meta(ge=0)]
Money = Annotated[float, msgspec.Meta(ge=0)]
ModelName = Annotated[str, msgspec.Meta(min_length=1)]
QuotaWindow = Literal["minute", "hour", "day", "month"]


class QuotaConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits for one time window of the UTC calendar; 0 means no limit."""

    requests: OptionalLimit = 0
    tokens: OptionalLimit = 0  # in and out together
    usd: Money = 0.0


class PriceConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """US dollars per million tokens."""

    input: Money
    output: Money
    cached: Money | None = None  # unset: as input


class LimitsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    key: dict[QuotaWindow, QuotaConfig] = {}  # of each key that calls
    session: dict[QuotaWindow, QuotaConfig] = {}  # of each conversation
    repeated_calls: OptionalLimit = (
        0  # the same call with the same result so often in one conversation, 0: no limit
    )
    prices: dict[ModelName, PriceConfig] = {}  # instead of the built-in table, which may be old


ByteLimit = Annotated[int, msgspec.Meta(ge=1)]

_OBSERVE_KIB, _OBSERVE_MIB = 1024, 1024 * 1024


class ObserveConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    log: Literal["off", "errors", "all"] = "errors"  # lines for requests; bodies are in none of them
    log_format: Literal["text", "json"] = "text"  # json: an object a line, for programs that collect them
    ledger: bool = True  # facts of requests, for `dragoman usage` and the dashboard: nobody's words
    traces: bool = False  # OpenTelemetry; where they go say the standard variables OTEL_EXPORTER_OTLP_…
    capture: Literal["off", "errors", "all"] = "off"  # bodies are the users' own: only when asked for
    capture_body_bytes: ByteLimit = 1 * _OBSERVE_MIB  # of each stage; a longer one is cut
    capture_bytes: ByteLimit = 256 * _OBSERVE_MIB  # of all captures; the oldest go first


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits apply to one worker process, not to all of them together."""

    host: Name = "127.0.0.1"  # nobody but this machine, unless asked (pain Q10)
    port: Port = 8377
    workers: Count = 1  # processes that share the port and the state; one for each core that may be busy
    no_auth: bool = False  # loopback only; anything else is refused
    keys: tuple[str, ...] = ()  # gateway keys; empty: one is made at first start
    admin_keys: tuple[
        str, ...
    ] = ()  # gateway keys that may also use the admin paths, as the one made at first start may
    google_callers: Literal["loopback", "always", "never"] = (
        "loopback"  # where a Google key of the caller's own will do: everybody has one (pain Q10)
    )
    allowed_hosts: tuple[
        str, ...
    ] = ()  # names and addresses clients may use; needed when `host` is not loopback (pain Q8)
    max_connections: Count = (
        4096  # idle ones count; they make room, else whoever comes later waits at the door
    )
    max_requests: Count = 2000  # at once; more are refused before their bodies are read
    max_body_bytes: Count = 64 * MIB  # long sessions with screenshots (pain J5)
    max_inflight_bytes: Count = 256 * MIB  # bodies of all running requests; in memory about four times that
    cache_bytes: Size = 96 * MIB  # all caches of a worker together, in memory; 0 disables them
    max_header_bytes: Count = 64 * KIB  # of one request, all together; never less than 8 KiB
    body_idle_s: Seconds = 30.0  # a body that has stopped coming is not waited for longer
    reader_idle_s: Seconds = 300.0  # a client that takes nothing of its answer for so long is gone
    keep_alive_s: Seconds = 120.0  # of an idle connection; longer than clients and balancers keep theirs
    ping_s: Seconds = 15.0  # Claude Code shows a stall banner at 20 s (pain E4)
    drain_s: Wait = 0.0  # after a stop signal: still open, but not ready, until balancers have noticed
    shutdown_s: Seconds = 30.0  # how long running streams may go on after that


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
