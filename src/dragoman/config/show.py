"""The effective settings as TOML, with secrets hidden and the source of each value in a comment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.config.model import Config
from dragoman.config.settings import SECRET_MEMBERS, SECRETS, SETTINGS, TABLES, value_of

HIDDEN = "********"


def show_config(config: Config, sources: Mapping[str, str] | None = None) -> str:
    """Return TOML that can be loaded again, except for the hidden secrets."""
    lines: list[str] = []
    section = ""
    for key in sorted(SETTINGS, key=lambda key: "." in key):
        before, _, name = key.rpartition(".")
        if before != section:
            section = before
            lines += ["", f"[{section}]"]
        origin = (sources or {}).get(key)
        lines.append(f"{name} = {encode_toml(_value(config, key))}" + (f"  # {origin}" if origin else ""))
    return "\n".join(lines) + "\n"


def _value(config: Config, key: str) -> object:
    value = value_of(config, key)
    if key in TABLES:
        return _hide(msgspec.to_builtins(value), SECRET_MEMBERS.get(key, ()))
    if key not in SECRETS or not value:
        return value
    return (HIDDEN,) * len(value) if isinstance(value, tuple) else HIDDEN


def _hide(table: dict[str, dict[str, Any]], members: tuple[str, ...]) -> dict[str, object]:
    """Hide the values of environment variables and headers, but keep their names."""
    return {
        name: entry | {member: dict.fromkeys(entry[member], HIDDEN) for member in members}
        for name, entry in table.items()
    }


def encode_toml(value: object) -> str:
    """Encode one value; tables are inline."""
    match value:
        case dict():
            inner = ", ".join(f"{encode_toml(name)} = {encode_toml(one)}" for name, one in value.items())
            return f"{{ {inner} }}" if inner else "{}"
        case tuple() | list():
            return f"[{', '.join(map(encode_toml, value))}]"
        case _:
            return json.dumps(value, ensure_ascii=False)
