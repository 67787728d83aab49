"""The description of a client: how it is started, and its environment, pointed at the gateway.

Variables that point the client elsewhere are removed for the run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from dragoman.cli.launch.settings_files import SettingsFile

# Gemini's context window is a million tokens; Claude Code assumes 200,000 for an unknown model (known problem F8). It
# reads this variable for such models only: of the older ones that it knows, claude-sonnet-4-5 needs the
# suffix [1m].
CONTEXT_TOKENS = 1_000_000

# Each of these would override the gateway's URL or key, or make Claude Code ask for a login (known problem N1).
_CREDENTIAL_VARIABLES = frozenset(
    {
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BEDROCK_BASE_URL",
        "ANTHROPIC_BEDROCK_MANTLE_BASE_URL",
        "ANTHROPIC_FOUNDRY_API_KEY",
        "ANTHROPIC_FOUNDRY_BASE_URL",
        "ANTHROPIC_FOUNDRY_RESOURCE",
        "ANTHROPIC_UNIX_SOCKET",
        "ANTHROPIC_VERTEX_BASE_URL",
        "ANTHROPIC_VERTEX_PROJECT_ID",
        "CLAUDE_CODE_API_BASE_URL",
        "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR",
        "CLAUDE_CODE_OAUTH_REFRESH_TOKEN",
        "CLAUDE_CODE_OAUTH_SCOPES",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR",
    }
)
_CLOUD_VARIABLES = frozenset(
    {
        "CLAUDE_CODE_USE_ANTHROPIC_AWS",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_FOUNDRY",
        "CLAUDE_CODE_USE_MANTLE",
        "CLAUDE_CODE_USE_VERTEX",
    }
)
#: Variables that `dragoman claude` removes, because Claude Code would prefer them.
CLAUDE_CONFLICTS = _CREDENTIAL_VARIABLES | _CLOUD_VARIABLES
# Models that were chosen for a cloud provider are removed with it; otherwise the user's choice stays.
_MODEL_VARIABLES = frozenset(
    {
        "ANTHROPIC_MODEL",
        "ANTHROPIC_DEFAULT_HAIKU_MODEL",
        "ANTHROPIC_DEFAULT_OPUS_MODEL",
        "ANTHROPIC_DEFAULT_SONNET_MODEL",
        "ANTHROPIC_SMALL_FAST_MODEL",
        "CLAUDE_CODE_SUBAGENT_MODEL",
    }
)
_CREDENTIAL_HEADERS = ("authorization", "x-api-key")
_LOOPBACK_NAMES = ("127.0.0.1", "localhost")


def child_env(
    env: Mapping[str, str],
    *,
    without: Collection[str] = (),
    defaults: Mapping[str, str] | None = None,
    added: Mapping[str, str],
) -> dict[str, str]:
    """Return the user's environment without conflicting variables, with defaults and mandatory values.

    Loopback addresses are added to NO_PROXY.
    """
    kept = {name: value for name, value in env.items() if name not in without}
    for name in ("NO_PROXY", "no_proxy"):
        kept[name] = _with_loopback(kept.get(name, ""))
    return {**(defaults or {}), **kept, **added}


def claude_env(env: Mapping[str, str], *, base_url: str, token: str) -> dict[str, str]:
    """Return the environment for Claude Code; variables that do not conflict, such as tool search, are kept."""
    removed = CLAUDE_CONFLICTS | {"ANTHROPIC_CUSTOM_HEADERS"}
    if any(env.get(name) for name in _CLOUD_VARIABLES):
        removed |= _MODEL_VARIABLES
    headers = _without_credentials(env.get("ANTHROPIC_CUSTOM_HEADERS", ""))
    defaults = {
        "CLAUDE_CODE_MAX_CONTEXT_TOKENS": str(CONTEXT_TOKENS),
        "CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY": "1",  # known problem F7
    }
    added = {"ANTHROPIC_BASE_URL": base_url, "ANTHROPIC_AUTH_TOKEN": token}
    if headers:
        added["ANTHROPIC_CUSTOM_HEADERS"] = headers
    return child_env(env, without=removed, defaults=defaults, added=added)


def settings_conflicts(settings: object) -> list[str]:
    """Return the keys of Claude Code's settings file that override the environment."""
    if not isinstance(settings, dict):
        return []
    env = settings.get("env")
    names = (
        set(env) & (CLAUDE_CONFLICTS | {"ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN"})
        if isinstance(env, dict)
        else set()
    )
    return [
        *(["apiKeyHelper"] if settings.get("apiKeyHelper") else []),
        *(f"env.{name}" for name in sorted(names)),
    ]


def _without_credentials(headers: str) -> str:
    lines = [line for line in headers.splitlines() if line.strip()]
    return "\n".join(
        line for line in lines if line.partition(":")[0].strip().lower() not in _CREDENTIAL_HEADERS
    )


def _with_loopback(no_proxy: str) -> str:
    """Add loopback names to NO_PROXY: a corporate proxy cannot reach this machine's own addresses."""
    names = [name.strip() for name in no_proxy.split(",") if name.strip()]
    return ",".join([*names, *(name for name in _LOOPBACK_NAMES if name not in names)])


#: The variable with the gateway key, for clients that read their key from a variable of any name.
KEY_VARIABLE = "DRAGOMAN_GATEWAY_KEY"

Env = Mapping[str, str]


class ClientModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that a client can offer; the default limits are Gemini's."""

    id: str
    context_window: int = 1_048_576
    max_output_tokens: int = 65_536


class GatewayEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The gateway for one client run, and a temporary folder for its files."""

    base_url: str
    token: str
    models: tuple[ClientModel, ...]  # the first one is the default
    folder: Path

    @property
    def model(self) -> str:
        return self.models[0].id


class SettingsEdit(msgspec.Struct, frozen=True, kw_only=True):
    """Keys in a settings file or table of the client that are overridden while it runs."""

    file: SettingsFile
    values: Mapping[str, Any]
    #: Keep existing values.
    only_missing: bool = False
    #: The client's subcommand that creates the file if the client has never run.
    created_by: str = ""
    #: Messages: after a key was set, and if the file cannot be used but the client can start without it.
    applied_message: str = ""
    unusable_message: str = ""


class LaunchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How to start a client: environment, arguments before the user's, files and links in the folder.

    `edits` change the user's own files and are undone; only for clients that offer nothing better.
    """

    env: dict[str, str]
    args: list[str] = []
    files: dict[str, str] = {}
    links: dict[str, Path] = {}
    edits: tuple[SettingsEdit, ...] = ()


def flag_value(argv: list[str], *flags: str) -> str:
    """Return the value of `--flag value` or `--flag=value`, or ""."""
    for arg, following in pairwise([*argv, ""]):
        flag, equals, value = arg.partition("=")
        if flag in flags:
            return value if equals else following
    return ""
