"""Names for callers: state knows them by their scopes, the settings by the place of their key."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.config import Config
from dragoman.server.auth import scope_of

_KNOWN_CHARACTERS = 8


def caller_names(config: Config, others: Mapping[str, str] | None = None) -> dict[str, str]:
    """By scope: `key 2` for the second of `server.keys`; `others` are names of keys that are no settings."""
    named = {key: f"key {number}" for number, key in enumerate(config.server.keys, 1)}
    named |= {key: f"admin key {number}" for number, key in enumerate(config.server.admin_keys, 1)}
    named |= {key: name for key, name in (others or {}).items() if key and key not in named}
    return {scope_of(""): "everybody"} | {scope_of(key): name for key, name in named.items()}


def caller_name(scope: str, names: Mapping[str, str]) -> str:
    """A caller with a Google key of their own, or with a key that is gone, has no name but a mark."""
    return names.get(scope) or f"#{scope[:_KNOWN_CHARACTERS]}"
