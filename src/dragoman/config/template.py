"""A settings file with every setting commented out at its default, with its reason."""

from __future__ import annotations

import inspect
import re

import msgspec

from dragoman.config.model import Config
from dragoman.config.settings import SECRETS, SETTINGS, describe_type, value_of
from dragoman.config.show import encode_toml

_KNOWN_PROBLEMS = re.compile(r" \(known problems? [^)]*\)")
_HEADER = """\
# Settings of Dragoman. Every line that begins with a # is a default: take the sign away and change it.
# dragoman config check says whether it is right, dragoman config show what is in force.
# Later ones win: this file, the variables (DRAGOMAN_SERVER_PORT=9000 is server.port), flags.
# Put no key here if others can read this file; GEMINI_API_KEY in the environment is enough.
"""


def config_template() -> str:
    """Return TOML that is valid as it is and changes nothing."""
    lines = [_HEADER]
    comments = setting_comments()
    section = ""
    for key in sorted(SETTINGS, key=lambda key: "." in key):
        before, _, name = key.rpartition(".")
        if before != section:
            section = before
            lines += ["", f"[{section}]"]
        reason = comments[key] or describe_type(SETTINGS[key].type)
        lines.append(f"#{name} = {_default(key)}  # {reason}")
    return "\n".join(lines) + "\n"


def setting_comments() -> dict[str, str]:
    """Return the comment beside each setting, by dotted key, read from the source of its class."""
    found: dict[str, str] = {}
    for key in SETTINGS:
        section, _, name = key.rpartition(".")
        source = inspect.getsource(type(getattr(Config(), section)) if section else Config)
        match = re.search(rf"^    {name}: (?:(?!\n    \w).)*?  # ([^\n]*)$", source, re.MULTILINE | re.DOTALL)
        found[key] = _KNOWN_PROBLEMS.sub("", match[1]) if match else ""
    return found


def _default(key: str) -> str:
    value = value_of(Config(), key)
    empty = "" if isinstance(value, str) else ()
    return encode_toml(empty if key in SECRETS else msgspec.to_builtins(value))
