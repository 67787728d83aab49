"""The secret values in the settings, for redaction in logs and answers."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

from dragoman.config.keys import SECRET_MEMBERS, SECRETS
from dragoman.config.model import Config


def secrets_of(config: Config) -> tuple[str, ...]:
    """Return all secret values, without duplicates."""
    return tuple(dict.fromkeys(text for text in _secret_texts(config) if text))


def _secret_texts(config: Config) -> Iterator[str]:
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
                    # also without the scheme of an Authorization header
                    yield from (text, text.rpartition(" ")[2])


def _passwords(url: str) -> Iterator[str]:
    """Yield the password of a URL, as written and percent-decoded; the rest of a URL is not secret."""
    written = urlsplit(url).password or ""
    yield from (written, unquote(written))


def _value(config: Config, key: str) -> object:
    value: object = config
    for name in key.split("."):
        value = getattr(value, name)
    return value
