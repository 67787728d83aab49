"""Access Google's JSON in all the forms that its parser accepts.

Names may be camelCase or snake_case and null means absent, as in ProtoJSON
(https://protobuf.dev/programming-guides/json/). A list of one may also be a single object.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

Json = dict[str, Any]

_CAPITAL = re.compile(r"[A-Z]")


def find_key(thing: Mapping[str, Any], name: str) -> str:
    """Return the key of a field as it is spelled in the object; camelCase if the field is absent."""
    snake = _to_snake_case(name)
    return snake if name not in thing and snake in thing else name


def get_field(thing: Mapping[str, Any], name: str) -> Any:
    return thing.get(find_key(thing, name))


def as_objects(value: Any) -> list[Json]:
    """Return the objects in a list, or a single object as a list; other values are ignored."""
    entries = value if isinstance(value, list) else [value]
    return [entry for entry in entries if isinstance(entry, dict)]


def with_field(thing: Mapping[str, Any], name: str, value: Any) -> Json:
    """Return a copy with the field set, in its existing spelling, or removed if the value is empty."""
    key = find_key(thing, name)
    if value:
        return {**thing, key: value}
    return {own: kept for own, kept in thing.items() if own != key}


@lru_cache(maxsize=256)
def _to_snake_case(name: str) -> str:
    return _CAPITAL.sub(lambda found: "_" + found[0].lower(), name)
