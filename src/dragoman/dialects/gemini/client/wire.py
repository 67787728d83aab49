"""Google's JSON as its parser takes it: either spelling of a name, one object for a list, null for nothing."""

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
    """`function_call` is `functionCall`; what is camel already stays."""
    return _SNAKE.sub(lambda match: match[1].upper(), name)


def read_object(raw: bytes | msgspec.Raw, where: str) -> Object:
    """The members of an object under their camelCase names, still as JSON text; nulls are left out."""
    found = jsontext.decode(_decode_object, bytes(raw), where)
    for name in found:
        if "." in name:  # no field of Google's is called so, and a dot is how we write a place
            raise InvalidRequest(f"Unknown name {name!r}: Cannot find field.", where=where)
    return {camel(name): value for name, value in found.items() if bytes(value) != _NULL}


def read_list(raw: bytes | msgspec.Raw, where: str) -> list[msgspec.Raw]:
    """A list, or the one object that stands for a list of one."""
    text = bytes(raw)
    if text[:1] == b"{":
        return [msgspec.Raw(text)]
    return [item for item in jsontext.decode(_decode_list, text, where) if bytes(item) != _NULL]


def read_text(raw: bytes | msgspec.Raw, where: str) -> str:
    return jsontext.decode(_decode_text, bytes(raw), where)


def read_number(raw: bytes | msgspec.Raw, where: str) -> int | float:
    """Google takes numbers as text too."""
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
    """The name of a value in upper case, or its number as text."""
    return str(jsontext.decode(_decode_enum, bytes(raw), where)).upper()


def read_flag(raw: bytes | msgspec.Raw | None) -> bool:
    return raw is not None and bytes(raw) in (b"true", b'"true"')


_decode_text = msgspec.json.Decoder(str).decode
_decode_enum = msgspec.json.Decoder(str | int).decode
_decode_number = msgspec.json.Decoder(int | float, strict=False).decode
