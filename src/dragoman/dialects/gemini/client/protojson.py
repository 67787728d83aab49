"""Read JSON as leniently as Google's parser does.

It accepts snake_case and camelCase names, a single object in place of a list, numbers as strings, and null for
an absent field (ProtoJSON).
"""

from __future__ import annotations

import math
import re
from functools import lru_cache

import msgspec

from dragoman import jsontext
from dragoman.errors import InvalidRequest

Object = dict[str, msgspec.Raw]

_NULL = b"null"
_SNAKE = re.compile(r"(?<=[a-z0-9])_([a-z0-9])")
_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_list = msgspec.json.Decoder(list[msgspec.Raw]).decode


@lru_cache(maxsize=2048)
def camel(name: str) -> str:
    """Return a name in camelCase: `function_call` becomes `functionCall`."""
    return _SNAKE.sub(lambda match: match[1].upper(), name)


def read_object(raw: bytes | msgspec.Raw, where: str) -> Object:
    """Return the members of an object by their camelCase names, as raw JSON; null members are omitted.

    Raise `InvalidRequest` if it is not an object or a name contains a dot.
    """
    found = jsontext.decode(_decode_object, bytes(raw), where)
    for name in found:
        if "." in name:  # no field of Google's has a dot, and we use dots to separate the names of a path
            raise InvalidRequest(f"Unknown name {name!r}: Cannot find field.", where=where)
    return {camel(name): value for name, value in found.items() if bytes(value) != _NULL}


def read_list(raw: bytes | msgspec.Raw, where: str) -> list[msgspec.Raw]:
    """Return the elements of a list, or a single object as a list of one; null elements are omitted."""
    text = bytes(raw)
    if text[:1] == b"{":
        return [msgspec.Raw(text)]
    return [item for item in jsontext.decode(_decode_list, text, where) if bytes(item) != _NULL]


def read_text(raw: bytes | msgspec.Raw, where: str) -> str:
    return jsontext.decode(_decode_text, bytes(raw), where)


def read_number(raw: bytes | msgspec.Raw, where: str) -> int | float:
    """Return a finite number; Google accepts numbers as strings too."""
    number: int | float = jsontext.decode(_decode_number, bytes(raw), where)
    if not math.isfinite(number):
        raise InvalidRequest(f"{number} is not a number here", where=where)
    return number


def read_whole(raw: bytes | msgspec.Raw, where: str) -> int:
    number = read_number(raw, where)
    if number != int(number):
        raise InvalidRequest(f"{number} is not a whole number", where=where)
    return int(number)


def read_enum(raw: bytes | msgspec.Raw, where: str) -> str:
    """Return the name of an enum value in upper case, or its number as a string."""
    return str(jsontext.decode(_decode_enum, bytes(raw), where)).upper()


def read_flag(raw: bytes | msgspec.Raw | None) -> bool:
    return raw is not None and bytes(raw) in (b"true", b'"true"')


_decode_text = msgspec.json.Decoder(str).decode
_decode_enum = msgspec.json.Decoder(str | int).decode
_decode_number = msgspec.json.Decoder(int | float, strict=False).decode
