"""Stage 1: JSON to message, table-driven, reporting every violation at once in Google's words.

The result is the same document in canonical spelling: camelCase names, enum names as published, numbers as
numbers, bytes decoded, lists always lists, nulls gone. The later stages see only that.

A request repeats most of the one before it, so it is read in pieces, and a piece seen before is not read again.
Where anything is wrong the whole document is read at once: what is reported never depends on what was seen.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import msgspec

from dragoman.emulator.backend import Backend
from dragoman.emulator.pieces import Parsed, Piece, keep, recall
from dragoman.emulator.refusal import Refusal, bad_fields
from dragoman.emulator.validate.tables import Message, load_messages
from dragoman.emulator.validate.walk import Walker

#: Objects and lists inside each other: the default of Google's open JSON parser.
_MAX_DEPTH = 100
#: A piece of a document has at most this many levels around it.
_LEVELS_AROUND = 3

_CONTENTS, _NESTED = "contents", "generateContentRequest"
_NULL = b"null"
_NO_BRACKETS = bytes(set(range(256)) - set(b"{}[]"))
_CONTAINERS: frozenset[type] = frozenset({dict, list})

_decode_skeleton = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode = msgspec.json.Decoder().decode


def parse(raw: bytes, backend: Backend, message: str = "GenerateContentRequest") -> dict[str, Any]:
    """The canonical document, or Google's refusal naming everything that is wrong with it."""
    table = load_messages(backend)[message]
    try:
        return _read_pieces(raw or b"{}", table, backend)
    except (_Imperfect, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _read_whole(raw or b"{}", table, backend)


class _Imperfect(Exception):
    """This piece needs a look at the whole document."""


def _read_whole(raw: bytes, message: Message, backend: Backend) -> dict[str, Any]:
    try:
        document = _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _broken_json(raw) from None
    except RecursionError:
        raise _too_deep() from None
    if not isinstance(document, dict):
        line = 'Invalid JSON payload received. Unknown name "": Root element must be a message.'
        raise bad_fields([("", line)])
    if _is_deeper(document, raw, _MAX_DEPTH):
        raise _too_deep()
    walker = Walker(backend)
    parsed = walker.read_message(document, message, None, 0)
    if walker.violations:
        raise bad_fields(walker.violations)
    return parsed


def _read_pieces(raw: bytes, message: Message, backend: Backend) -> Parsed:
    skeleton = {name: bytes(value) for name, value in _decode_skeleton(raw).items()}
    contents, nested = (
        skeleton.pop(name, _NULL) if name in message.fields else _NULL for name in (_CONTENTS, _NESTED)
    )
    request = Parsed(
        None if contents == _NULL else _read_contents(contents, message, backend),
        _read_rest(tuple(skeleton.items()), message, backend),
    )
    if nested != _NULL:
        # A count of a whole request: it has the same pieces as the request itself.
        request[_NESTED] = _read_pieces(nested, load_messages(backend)["GenerateContentRequest"], backend)
    return request


def _read_contents(raw: bytes, message: Message, backend: Backend) -> list[Piece]:
    items = map(bytes, _decode_items(raw)) if raw.startswith(b"[") else [raw]
    place = f"{message.name}.{_CONTENTS}[]"
    keys = [(backend.table, place, item) for item in items if item != _NULL]
    found = {key: recall(key) for key in keys}
    fresh = [key for key, piece in found.items() if piece is None]
    values = _read_alone(_CONTENTS, [_decode_piece(raw) for *_, raw in fresh], message, backend)
    made = {key: keep(key, value, len(key[2])) for key, value in zip(fresh, values, strict=True)}
    return [found[key] or made[key] for key in keys]


def _read_rest(rest: tuple[tuple[str, bytes], ...], message: Message, backend: Backend) -> Piece:
    """Everything but the contents as one piece, made of the pieces that its fields are."""
    whole = (backend.table, message.name, rest)
    known = recall(whole)
    if known is not None:
        return known
    parsed: dict[str, Any] = {}
    for name, raw in rest:
        field = message.fields.get(name)
        if field is None or field.oneof or field.name in parsed:
            raise _Imperfect
        if raw != _NULL:
            key = (backend.table, f"{message.name}.{name}", raw)
            piece = recall(key) or keep(
                key, _read_alone(name, _decode_piece(raw), message, backend), len(raw)
            )
            parsed[field.name] = piece.value
    return keep(whole, parsed, sum(len(raw) for _, raw in rest))


def _read_alone(name: str, value: Any, message: Message, backend: Backend) -> Any:
    """One field without regard to its neighbours."""
    walker = Walker(backend)
    parsed = walker.read_message({name: value}, message, None, 0)
    if walker.violations:
        raise _Imperfect
    return parsed[message.fields[name].name]


def _decode_piece(raw: bytes) -> Any:
    value = _decode(raw)
    if _is_deeper(value, raw, _MAX_DEPTH - _LEVELS_AROUND):
        raise _Imperfect
    return value


def _is_deeper(value: Any, raw: bytes, levels: int) -> bool:
    """Whether objects and lists stand inside each other more than `levels` times."""
    if len(raw.translate(None, _NO_BRACKETS)) <= 2 * levels:
        return False
    nodes = [value]
    for _ in range(levels):
        inside = chain.from_iterable([node.values() if node.__class__ is dict else node for node in nodes])
        nodes = [child for child in inside if child.__class__ in _CONTAINERS]
        if not nodes:
            return False
    return True


def _too_deep() -> Refusal:
    return Refusal("Invalid JSON payload received. Message too deep.")


def _broken_json(raw: bytes) -> Refusal:
    """Google quotes the place; ours is the start of the body."""
    snippet = raw[:40].decode("utf-8", "replace")
    line = f"Invalid JSON payload received. Unexpected token.\n{snippet}\n^"
    return bad_fields([("", line)])
