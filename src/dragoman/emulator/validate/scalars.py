"""Scalar values as Google's JSON parser accepts them. All of its leniency is in this module."""

from __future__ import annotations

import binascii
import math
import re
import sys
from collections.abc import Callable
from typing import Any

_INTEGER = re.compile(r"-?[0-9]+")
_NUMBER = re.compile(r"-?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DURATION = re.compile(r"-?\d+(\.\d{1,9})?s")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")
_FLOAT_NAMES = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_BOOL_NAMES = {"true": True, "false": False}
#: Base64url to base64. Characters of the plain alphabet become invalid, because the two must not be mixed.
_URL_SAFE = bytes.maketrans(b"-_+/", b"+/!!")
_SPACES = b" \t\r\n"
_MAX_FLOAT = 3.4028234663852886e38

#: The type in `Invalid value at 'x' (TYPE), …`; messages and enums use their type URL.
TYPE_NAMES = {
    "string": "TYPE_STRING",
    "bool": "TYPE_BOOL",
    "int32": "TYPE_INT32",
    "int64": "TYPE_INT64",
    "float": "TYPE_FLOAT",
    "double": "TYPE_DOUBLE",
    "bytes": "TYPE_BYTES",
    "struct": "type.googleapis.com/google.protobuf.Struct",
    "duration": "type.googleapis.com/google.protobuf.Duration",
    "timestamp": "type.googleapis.com/google.protobuf.Timestamp",
}


class InvalidScalar(ValueError):
    """The value does not fit the field.

    The message follows the type in the error text; if it is empty, the error shows the value.
    """


def read_string(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise InvalidScalar


def read_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value in _BOOL_NAMES:
        return _BOOL_NAMES[value]
    raise InvalidScalar


def _read_float(largest: float) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        if isinstance(value, str):
            if value in _FLOAT_NAMES:
                return _FLOAT_NAMES[value]
            if not _NUMBER.fullmatch(value):
                raise InvalidScalar
            value = float(value)
        if isinstance(value, bool) or not isinstance(value, int | float) or not -largest <= value <= largest:
            raise InvalidScalar
        return value

    return read


def read_bytes(value: Any) -> bytes:
    """Decode base64 or base64url, but not a mixture. Padding is optional."""
    if not isinstance(value, str):
        raise InvalidScalar
    try:
        raw = value.encode("ascii").translate(None, _SPACES).rstrip(b"=")
        if b"-" in raw or b"_" in raw:
            raw = raw.translate(_URL_SAFE)
        return binascii.a2b_base64(raw + b"=" * (-len(raw) % 4), strict_mode=True)
    except (binascii.Error, UnicodeEncodeError):
        raise InvalidScalar(f'Base64 decoding failed for "{value}"') from None


def _read_int(bits: int) -> Callable[[Any], int]:
    limit = 1 << (bits - 1)

    def read(value: Any) -> int:
        if isinstance(value, str) and _INTEGER.fullmatch(value):
            number = int(value) if len(value) <= 20 else limit
        elif isinstance(value, float) and value.is_integer():
            number = int(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            number = value
        else:
            raise InvalidScalar
        if not -limit <= number < limit:
            raise InvalidScalar
        return number

    return read


def _read_pattern(pattern: re.Pattern[str]) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if isinstance(value, str) and pattern.fullmatch(value):
            return value
        raise InvalidScalar

    return read


SCALAR_READERS: dict[str, Callable[[Any], Any]] = {
    "string": read_string,
    "bool": read_bool,
    "int32": _read_int(32),
    "int64": _read_int(64),
    "float": _read_float(_MAX_FLOAT),
    "double": _read_float(sys.float_info.max),
    "bytes": read_bytes,
    "duration": _read_pattern(_DURATION),
    "timestamp": _read_pattern(_TIMESTAMP),
}
