"""Stage 1: parse JSON into a message by the field tables, and report all violations at once.

The result is the same document in canonical form: camelCase names, enum names as published, numbers as
numbers, bytes decoded, lists always lists, no nulls. The later stages rely on that.

Most of a request repeats the previous one, so it is parsed in pieces and pieces are cached by their bytes
(`pieces`). If anything is wrong, the whole document is parsed again at once, so that the errors never depend
on the cache.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import msgspec

from dragoman.emulator.backend import Backend
from dragoman.emulator.pieces import CachedFragment, ParsedRequest, find_fragment, store_fragment
from dragoman.emulator.refusal import ApiError, field_violations_error
from dragoman.emulator.validate.tables import MessageDescriptor, load_messages
from dragoman.emulator.validate.walk import MessageParser

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
