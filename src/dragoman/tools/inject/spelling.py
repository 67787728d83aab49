"""Google's JSON as its parser takes it: a name in either spelling, one object for a list of one, null for nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

Json = dict[str, Any]

_CAPITAL = re.compile(r"[A-Z]")


def spelled(thing: Mapping[str, Any], name: str) -> str:
    """The key under which a field stands there; as Google writes it if it does not."""
    snake = _snake(name)
    return snake if name not in thing and snake in thing else name


def read(thing: Mapping[str, Any], name: str) -> Any:
    return thing.get(spelled(thing, name))


def objects(value: Any) -> list[Json]:
    """The objects of a list; what is none is nobody's to understand here."""
    entries = value if isinstance(value, list) else [value]
    return [entry for entry in entries if isinstance(entry, dict)]


def put(thing: Mapping[str, Any], name: str, value: Any) -> Json:
    """A copy with the field set in the spelling it has there, or without it if the value is empty."""
    key = spelled(thing, name)
    if value:
        return {**thing, key: value}
    return {own: kept for own, kept in thing.items() if own != key}


@lru_cache(maxsize=256)
def _snake(name: str) -> str:
    return _CAPITAL.sub(lambda found: "_" + found[0].lower(), name)
