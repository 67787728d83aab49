"""Stage 1: parse JSON into a message by its field descriptors, and report all violations at once.

The result is the same document in canonical form: camelCase names, enum names as published, numbers as numbers,
bytes decoded, lists always lists, no nulls. The later stages rely on that. All leniency of Google's JSON parser
about scalars is in the `read_*` functions.

Most of a request repeats the previous one, so it is parsed in fragments, which are cached by their bytes
(`parsed_request`). If anything is invalid, the whole document is parsed again at once, so that the errors never
depend on the cache. `parse_valid_fields` returns the readable part of a rejected request: a script with
`validate: false` answers such requests too, and matches them by their content.
"""

from __future__ import annotations

import binascii
import math
import re
import sys
from collections.abc import Callable
from itertools import chain
from typing import Any

import msgspec

from dragoman.emulator.errors import ApiError, field_violations_error
from dragoman.emulator.parsed_request import CachedFragment, ParsedRequest, find_fragment, store_fragment
from dragoman.emulator.routes import Backend
from dragoman.emulator.validate.descriptors import FieldDescriptor, MessageDescriptor, load_messages

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


#: Measured 2026-09: this many levels of `properties` are accepted.
_MAX_PROPERTY_DEPTH = 30

_NOT_REPEATING = "Proto field is not repeating, cannot start list."

#: A place is (parent place, snake name, index). It is rendered only for an error.
FieldPath = tuple[Any, str, int | None] | None


class MessageParser:
    """Walks one document and collects violations as (path, line)."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.violations: list[tuple[str, str]] = []

    def read_message(
        self, value: dict[str, Any], message: MessageDescriptor, place: FieldPath, depth: int
    ) -> dict[str, Any]:
        fields = message.fields
        parsed: dict[str, Any] = {}
        taken: dict[str, str] = {}
        for key, item in value.items():
            field = fields.get(key)
            if field is None:
                self._unknown(key, place)
                continue
            if item is None:
                continue
            name = field.name
            if field.oneof and taken.setdefault(field.oneof, name) != name:
                self._oneof_conflict(field, key, place)
            elif type(item) is field.python_type:
                parsed[name] = item
            elif field.is_list:
                result = self._read_list(item, field, place, depth)
                parsed[name] = parsed[name] + result if name in parsed else result
            elif field.is_map:
                parsed[name] = self._read_map(item, field, place, depth)
            else:
                parsed[name] = self._read_one(item, field, place, (place, field.snake_name, None), depth)
        return parsed

    def _read_list(self, value: Any, field: FieldDescriptor, parent: FieldPath, depth: int) -> list[Any]:
        items = value if isinstance(value, list) else [value]
        message, snake = field.message, field.snake_name
        return [
            self.read_message(item, message, (parent, snake, index), depth)
            if message is not None and type(item) is dict
            else self._read_one(item, field, parent, (parent, snake, index), depth)
            for index, item in enumerate(items)
            if item is not None
        ]

    def _read_map(self, value: Any, field: FieldDescriptor, parent: FieldPath, depth: int) -> dict[str, Any]:
        if not isinstance(value, dict):
            self._wrong_shape(value, field, parent, (parent, field.snake_name, None))
            return {}
        if field.message is not None and depth >= _MAX_PROPERTY_DEPTH:
            key = next(iter(value), field.name)
            line = f"Message too deep. Max recursion depth reached for key '{key}'"
            self.violations.append((format_path((parent, field.snake_name, None)), line))
            return {}
        parsed = {}
        for index, (key, item) in enumerate(value.items()):
            entry = (parent, field.snake_name, index)
            if item is not None:
                parsed[key] = self._read_one(item, field, entry, (entry, "value", None), depth + 1)
        return parsed

    def _read_one(
        self, value: Any, field: FieldDescriptor, parent: FieldPath, place: FieldPath, depth: int
    ) -> Any:
        if field.message is not None:
            if isinstance(value, dict):
                return self.read_message(value, field.message, place, depth)
            return self._wrong_shape(value, field, parent, place)
        kind = field.kind
        if kind == "value" or (kind == "struct" and isinstance(value, dict)):
            return value
        if isinstance(value, dict | list) or kind == "struct":
            return self._wrong_shape(value, field, parent, place)
        if kind == "enum":
            return self._read_enum(value, field, place)
        try:
            return SCALAR_READERS[kind](value)
        except InvalidScalar as problem:
            return self._invalid(place, TYPE_NAMES[kind], str(problem) or _show(value))

    def _read_enum(self, value: Any, field: FieldDescriptor, place: FieldPath) -> str | None:
        word = value
        if isinstance(value, float) and value.is_integer():
            word = int(value)
        name = None if isinstance(value, bool) else field.enum.get(str(word).upper().replace("-", "_"))
        if name is None:
            self._invalid(place, self.backend.type_url(field.type_name), _show(value))
        return name

    def _wrong_shape(self, value: Any, field: FieldDescriptor, parent: FieldPath, place: FieldPath) -> None:
        """Report a list, an object or a scalar where the field expects another of the three."""
        if isinstance(value, list):
            self._unknown(field.snake_name, parent, _NOT_REPEATING)
        elif isinstance(value, dict):
            self._invalid(parent, field.snake_name, "Starting an object on a scalar field")
        else:
            word = TYPE_NAMES.get(field.kind) or self.backend.type_url(field.type_name)
            self._invalid(place, word, _show(value))

    def _unknown(self, name: str, place: FieldPath, why: str = "Cannot find field.") -> None:
        path = format_path(place)
        at = f" at '{path}'" if path else ""
        why = why if name else "Proto fields must have a name."
        self.violations.append((path, f'Invalid JSON payload received. Unknown name "{name}"{at}: {why}'))

    def _oneof_conflict(self, field: FieldDescriptor, key: str, place: FieldPath) -> None:
        self._invalid(place, "oneof", f"oneof field '{field.oneof}' is already set. Cannot set '{key}'")

    def _invalid(self, place: FieldPath, word: str, why: str) -> None:
        path = format_path(place)
        self.violations.append((path, f"Invalid value at '{path}' ({word}), {why}"))


def format_path(place: FieldPath) -> str:
    """Return a place as `tools[0].function_declarations[1].parameters.properties[2].value`."""
    names: list[str] = []
    while place is not None:
        parent, name, index = place
        names.append(name if index is None else f"{name}[{index}]")
        place = parent
    return ".".join(reversed(names))


def _show(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else msgspec.json.encode(value).decode()


#: The nesting limit of objects and lists, which is the default of Google's open source JSON parser.
_MAX_DEPTH = 100
#: The maximum number of levels around a piece.
_MAX_PARENTS = 3

_CONTENTS, _NESTED = "contents", "generateContentRequest"
_NULL = b"null"
_NO_BRACKETS = bytes(set(range(256)) - set(b"{}[]"))
_CONTAINERS: frozenset[type] = frozenset({dict, list})

_decode_skeleton = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode = msgspec.json.Decoder().decode


def parse_request(raw: bytes, backend: Backend, message: str = "GenerateContentRequest") -> dict[str, Any]:
    """Return the canonical document, or raise Google's error with all violations."""
    table = load_messages(backend)[message]
    try:
        return _parse_fragments(raw or b"{}", table, backend)
    except (_NeedsWholeDocument, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _parse_whole(raw or b"{}", table, backend)


class _NeedsWholeDocument(Exception):
    """The piece cannot be parsed on its own; parse the whole document instead."""


def _parse_whole(raw: bytes, message: MessageDescriptor, backend: Backend) -> dict[str, Any]:
    try:
        document = _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _broken_json(raw) from None
    except RecursionError:
        raise _too_deep() from None
    if not isinstance(document, dict):
        line = 'Invalid JSON payload received. Unknown name "": Root element must be a message.'
        raise field_violations_error([("", line)])
    if _is_deeper(document, raw, _MAX_DEPTH):
        raise _too_deep()
    walker = MessageParser(backend)
    parsed = walker.read_message(document, message, None, 0)
    if walker.violations:
        raise field_violations_error(walker.violations)
    return parsed


def _parse_fragments(raw: bytes, message: MessageDescriptor, backend: Backend) -> ParsedRequest:
    skeleton = {name: bytes(value) for name, value in _decode_skeleton(raw).items()}
    contents, nested = (
        skeleton.pop(name, _NULL) if name in message.fields else _NULL for name in (_CONTENTS, _NESTED)
    )
    request = ParsedRequest(
        None if contents == _NULL else _parse_contents(contents, message, backend),
        _parse_other_fields(tuple(skeleton.items()), message, backend),
    )
    if nested != _NULL:
        # A countTokens request that contains a whole request shares the pieces of that request.
        request[_NESTED] = _parse_fragments(nested, load_messages(backend)["GenerateContentRequest"], backend)
    return request


def _parse_contents(raw: bytes, message: MessageDescriptor, backend: Backend) -> list[CachedFragment]:
    items = map(bytes, _decode_items(raw)) if raw.startswith(b"[") else [raw]
    place = f"{message.name}.{_CONTENTS}[]"
    keys = [(backend.table, place, item) for item in items if item != _NULL]
    found = {key: find_fragment(key) for key in keys}
    fresh = [key for key, piece in found.items() if piece is None]
    values = _parse_field(_CONTENTS, [_decode_fragment(raw) for *_, raw in fresh], message, backend)
    made = {key: store_fragment(key, value, len(key[2])) for key, value in zip(fresh, values, strict=True)}
    return [found[key] or made[key] for key in keys]


def _parse_other_fields(
    rest: tuple[tuple[str, bytes], ...], message: MessageDescriptor, backend: Backend
) -> CachedFragment:
    """Return all fields but the contents as one piece, built from one cached piece per field."""
    whole = (backend.table, message.name, rest)
    known = find_fragment(whole)
    if known is not None:
        return known
    parsed: dict[str, Any] = {}
    for name, raw in rest:
        field = message.fields.get(name)
        if field is None or field.oneof or field.name in parsed:
            raise _NeedsWholeDocument
        if raw != _NULL:
            key = (backend.table, f"{message.name}.{name}", raw)
            piece = find_fragment(key) or store_fragment(
                key, _parse_field(name, _decode_fragment(raw), message, backend), len(raw)
            )
            parsed[field.name] = piece.value
    return store_fragment(whole, parsed, sum(len(raw) for _, raw in rest))


def _parse_field(name: str, value: Any, message: MessageDescriptor, backend: Backend) -> Any:
    """Parse one field on its own."""
    walker = MessageParser(backend)
    parsed = walker.read_message({name: value}, message, None, 0)
    if walker.violations:
        raise _NeedsWholeDocument
    return parsed[message.fields[name].name]


def _decode_fragment(raw: bytes) -> Any:
    value = _decode(raw)
    if _is_deeper(value, raw, _MAX_DEPTH - _MAX_PARENTS):
        raise _NeedsWholeDocument
    return value


def _is_deeper(value: Any, raw: bytes, levels: int) -> bool:
    """Whether objects and lists are nested more than `levels` deep."""
    if len(raw.translate(None, _NO_BRACKETS)) <= 2 * levels:
        return False
    nodes = [value]
    for _ in range(levels):
        inside = chain.from_iterable([node.values() if node.__class__ is dict else node for node in nodes])
        nodes = [child for child in inside if child.__class__ in _CONTAINERS]
        if not nodes:
            return False
    return True


def _too_deep() -> ApiError:
    return ApiError("Invalid JSON payload received. Message too deep.")


def _broken_json(raw: bytes) -> ApiError:
    """Return the error for a syntax error. Google quotes the position; the emulator quotes the start."""
    snippet = raw[:40].decode("utf-8", "replace")
    line = f"Invalid JSON payload received. Unexpected token.\n{snippet}\n^"
    return field_violations_error([("", line)])


def parse_valid_fields(raw: bytes, backend: Backend, message: str) -> dict[str, Any]:
    """Return the canonical document without its invalid fields; empty if nothing is readable."""
    try:
        document = msgspec.json.decode(raw)
        if not isinstance(document, dict):
            return {}
        parsed = MessageParser(backend).read_message(document, load_messages(backend)[message], None, 0)
        valid = _without_nulls(parsed)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return valid if isinstance(valid, dict) else {}


def _without_nulls(value: Any) -> Any:
    """Remove the None values that the walker puts in place of invalid values."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value if item is not None]
    return value
