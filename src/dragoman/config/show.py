"""The effective settings as TOML: secrets hidden, the origin of each value beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.config.keys import SECRET_MEMBERS, SECRETS, SETTINGS
from dragoman.config.model import Config

HIDDEN = "********"


def show_config(config: Config, sources: Mapping[str, str] | None = None) -> str:
    """A file that would load again, but for the hidden secrets."""
    lines: list[str] = []
    section = ""
    for key in sorted(SETTINGS, key=lambda key: "." in key):
        before, _, name = key.rpartition(".")
        if before != section:
            section = before
            lines += ["", f"[{section}]"]
        origin = (sources or {}).get(key)
        lines.append(f"{name} = {_encode(_value(config, key))}" + (f"  # {origin}" if origin else ""))
    return "\n".join(lines) + "\n"


def _value(config: Config, key: str) -> object:
    value: object = config
    for name in key.split("."):
        value = getattr(value, name)
    if key in SECRET_MEMBERS:
        return _hide(msgspec.to_builtins(value), SECRET_MEMBERS[key])
    if key not in SECRETS or not value:
        return value
    return (HIDDEN,) * len(value) if isinstance(value, tuple) else HIDDEN


def _hide(table: dict[str, dict[str, Any]], members: tuple[str, ...]) -> dict[str, object]:
    """The names of the variables and headers stay, their values do not."""
    return {
        name: entry | {member: dict.fromkeys(entry[member], HIDDEN) for member in members}
        for name, entry in table.items()
    }


def _encode(value: object) -> str:
    match value:
        case dict():
            inner = ", ".join(f"{_encode(name)} = {_encode(one)}" for name, one in value.items())
            return f"{{ {inner} }}" if inner else "{}"
        case tuple() | list():
            return f"[{', '.join(map(_encode, value))}]"
        case _:
            return json.dumps(value, ensure_ascii=False)
