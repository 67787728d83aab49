"""Which texts of the settings are secrets, for whoever must keep them out of logs and answers."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

from dragoman.config.keys import SECRET_MEMBERS, SECRETS
from dragoman.config.model import Config


def secrets_of(config: Config) -> tuple[str, ...]:
    """All of them, none twice."""
    return tuple(dict.fromkeys(text for text in _texts(config) if text))


def _texts(config: Config) -> Iterator[str]:
    for key in SECRETS:
        value = _value(config, key)
        texts: tuple[str, ...] = value if isinstance(value, tuple) else (str(value),)
        for text in texts:
            yield from _passwords(text) if "://" in text else (text,)
    for key, members in SECRET_MEMBERS.items():
        table = _value(config, key)
        for entry in table.values() if isinstance(table, dict) else ():
            for member in members:
                for text in getattr(entry, member).values():
                    yield from (text, text.rpartition(" ")[2])  # a header's scheme is none


def _passwords(url: str) -> Iterator[str]:
    """Of an address only the password is one; it may be written in two ways."""
    written = urlsplit(url).password or ""
    yield from (written, unquote(written))


def _value(config: Config, key: str) -> object:
    value: object = config
    for name in key.split("."):
        value = getattr(value, name)
    return value
