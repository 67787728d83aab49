"""Display names of callers: the ledger has only their scopes, which are mapped to keys of the settings."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.config import Config
from dragoman.server.auth import scope_of

_SCOPE_PREFIX_CHARACTERS = 8


def caller_names(config: Config, others: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return names by scope, such as `key 2` for the second of `server.keys`.

    `others` maps keys that are not in the settings to their names.
    """
    named = {key: f"key {number}" for number, key in enumerate(config.server.keys, 1)}
    named |= {key: f"admin key {number}" for number, key in enumerate(config.server.admin_keys, 1)}
    named |= {key: name for key, name in (others or {}).items() if key and key not in named}
    return {scope_of(""): "everybody"} | {scope_of(key): name for key, name in named.items()}


def caller_name(scope: str, names: Mapping[str, str]) -> str:
    """Return the name of a scope, or `#` and its first characters if its key is not in the settings."""
    return names.get(scope) or f"#{scope[:_SCOPE_PREFIX_CHARACTERS]}"
