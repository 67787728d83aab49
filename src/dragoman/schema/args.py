"""Check the model's arguments against the client's schema, and repair them where the intent is unambiguous."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import islice
from typing import Any, Final

import msgspec

from dragoman.notes import Note
from dragoman.schema.normalize import distinct, type_of
from dragoman.schema.strict import validate_strictly
from dragoman.schema.validate import Document, Validator, below
from dragoman.schema.walk import Schema, too_deep

#: Name of the property that `compile_schema` adds to objects without properties (known problem B7); never a tool's own.
PLACEHOLDER: Final = "dragoman_unused"

_PLACEHOLDER_BYTES: Final = PLACEHOLDER.encode()
_MAX_DEPTH: Final = 60
_MAX_PROBLEMS: Final = 20
_CACHED: Final = 512
_MAX_CACHED_BYTES: Final = 64 * 1024  # per schema: 512 entries have at most 32 MB of keys
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?")
_BOOLEANS: Final = {"true": True, "false": False, "True": True, "False": False}
_WRONG: Final = object()
_INVALID: Final = "arguments: do not match the schema"


def check_args(args: bytes, schema: bytes) -> tuple[str, ...]:
    """Return the problems of the arguments, each with its path; empty if they are valid."""
    value = _decode(args)
    return _check_is_object(value) or _check_leniently(value, schema)


def check_args_strictly(
    args: bytes, schema: bytes, *, where: str
) -> tuple[tuple[str, ...], tuple[Note, ...]]:
    """Like `check_args`, but apply every keyword of JSON Schema.

    If the schema cannot be applied strictly, return a note and the result of the lenient check.
    """
    value = _decode(args)
    problems = _check_is_object(value)
    if problems:
        return problems, ()
    verdict = validate_strictly(value, schema)
    if verdict.not_checked:
        note = Note("dropped", where, f"not validated strictly: {verdict.not_checked}")
        return _check_leniently(value, schema), (note,)
    if verdict.valid:
        return (), ()
    return verdict.problems or _check_leniently(value, schema) or (_INVALID,), ()


def _check_is_object(value: Any) -> tuple[str, ...]:
    if value is _WRONG:
        return ("arguments: not valid JSON",)
    return () if isinstance(value, dict) else (f"arguments: expected object, got {type_of(value)}",)


def _check_leniently(value: Any, schema: bytes) -> tuple[str, ...]:
    document = _document(schema)
    return tuple(islice(Validator(document).problems(value, document.root), _MAX_PROBLEMS))


def repair_args(args: bytes, schema: bytes, *, where: str) -> tuple[bytes, tuple[Note, ...]]:
    """Return the arguments with unambiguous mistakes repaired, and a note for each repair.

    The same bytes are returned if they are valid or cannot be repaired.
    """
    value = _decode(args)
    if not isinstance(value, dict):
        return args, ()
    document = _document(schema)
    validator = Validator(document, whole=True)
    has_placeholder = _PLACEHOLDER_BYTES in args and _PLACEHOLDER_BYTES not in schema
    if not has_placeholder and validator.ok(value, document.root):
        return args, ()
    if too_deep(value, _MAX_DEPTH):
        return args, ()
    mender = _Repairer(validator)
    mended = mender.repair(_strip(value) if has_placeholder else value, document.root)
    if mended is value or validator.exhausted:
        return args, ()
    notes = tuple(Note("mended", f"{where}.{path}" if path else where, why) for path, why in mender.done)
    return msgspec.json.encode(mended), notes


def _decode(data: bytes | str) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _WRONG


def _document(schema: bytes) -> Document:
    return _read_cached(schema) if len(schema) <= _MAX_CACHED_BYTES else _read(schema)


def _read(schema: bytes) -> Document:
    value = _decode(schema)
    return Document(True if value is _WRONG else value)


_read_cached = lru_cache(maxsize=_CACHED)(_read)


def _strip(value: Any) -> Any:
    """Return a copy without the placeholder property."""
    if isinstance(value, dict):
        return {key: _strip(sub) for key, sub in value.items() if key != PLACEHOLDER}
    return [_strip(sub) for sub in value] if isinstance(value, list) else value


class _Repairer:
    """Repairs one value; `done` lists path and change. A string is changed only if none is allowed (known problem P2)."""

    def __init__(self, validator: Validator) -> None:
        self.done: list[tuple[str, str]] = []
        self._validator = validator
        self._document = validator.document

    def repair(self, value: Any, schema: Any, path: str = "", depth: int = 0) -> Any:
        """Return the repaired value, or the same object if nothing was changed."""
        if depth > _MAX_DEPTH or self._validator.ok(value, schema):
            return value
        node = self._document.normalized(schema)
        for member in node.get("allOf", ()):
            value = self.repair(value, member, path, depth + 1)
        if "$ref" in node:
            value = self.repair(value, self._document.target(node["$ref"]), path, depth + 1)
        for key in ("anyOf", "oneOf"):
            if key in node:
                value = self._union(value, node[key], path, depth)
        if "type" in node and not self._validator.typed(value, node["type"]):
            return self._convert(value, schema, path, depth)
        if isinstance(value, dict):
            return self._object(value, node, path, depth)
        return self._array(value, node, path, depth) if isinstance(value, list) else value

    def _union(self, value: Any, branches: list[Any], path: str, depth: int) -> Any:
        """Return the repaired value if exactly one result fits a branch; with several the intent is ambiguous."""
        non_null = [
            branch for branch in branches if self._document.normalized(branch).get("type") != ["null"]
        ]
        if len(non_null) == 1:
            return self.repair(value, non_null[0], path, depth + 1)
        found: list[tuple[Any, _Repairer]] = []
        for branch in non_null:
            attempt = _Repairer(self._validator)
            mended = attempt.repair(value, branch, path, depth + 1)
            if self._validator.ok(mended, branch):
                found.append((mended, attempt))
        if len(distinct([mended for mended, _ in found])) != 1:
            return value
        self.done += found[0][1].done
        return found[0][0]

    def _convert(self, value: Any, schema: Any, path: str, depth: int) -> Any:
        """Convert a value of the wrong type if exactly one allowed type can represent it."""
        node = self._document.normalized(schema)
        found = []
        for kind in node["type"]:
            made = _CONVERSIONS.get(kind, _never)(value)
            if made is _WRONG:
                continue
            if isinstance(made, dict | list) or self._validator.ok(made, schema):
                found.append(made)
        if not found and node["type"] in (["array"], ["array", "null"]) and self._fits_item(value, node):
            found.append([value])
        if len(distinct(found)) != 1:
            return value
        self.done.append((path, f"{type_of(value)} to {type_of(found[0])}"))
        return self.repair(found[0], schema, path, depth + 1)

    def _fits_item(self, value: Any, node: Schema) -> bool:
        """Whether a single value may be wrapped in an array: only if the items are typed and it is a valid item."""
        items = node.get("items")
        typed = "type" in self._document.normalized(items) or "$ref" in self._document.normalized(items)
        return typed and value is not None and "prefixItems" not in node and self._validator.ok(value, items)

    def _object(self, value: dict[str, Any], node: Schema, path: str, depth: int) -> dict[str, Any]:
        known, required = node.get("properties", {}), node.get("required", ())
        other = True if "patternProperties" in node else node.get("additionalProperties", True)
        out: dict[str, Any] = {}
        for name, sub in value.items():
            schema = known.get(name, other)
            if (
                sub is None
                and name in known
                and name not in required
                and not self._validator.ok(None, schema)
            ):
                self.done.append((below(path, name), "null for an optional property left out"))
            else:
                out[name] = self.repair(sub, schema, below(path, name), depth + 1)
        same = len(out) == len(value) and all(out[name] is sub for name, sub in value.items())
        return value if same else out

    def _array(self, value: list[Any], node: Schema, path: str, depth: int) -> list[Any]:
        first = node.get("prefixItems", [])
        rest = [node.get("items", True)] * max(0, len(value) - len(first))
        out = [
            self.repair(one, schema, below(path, i), depth + 1)
            for i, (one, schema) in enumerate(zip(value, [*first, *rest], strict=False))
        ]
        return value if all(map(_is, out, value)) else out


def _is(a: object, b: object) -> bool:
    return a is b


def _never(_value: Any) -> Any:
    return _WRONG


def _number(value: Any) -> Any:
    return _decode(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else _WRONG


def _integer(value: Any) -> Any:
    number = value if isinstance(value, float) else _number(value)
    if isinstance(number, float):
        return int(number) if number.is_integer() else _WRONG
    return number


def _boolean(value: Any) -> Any:
    return _BOOLEANS.get(value, _WRONG) if isinstance(value, str) else _WRONG


def _container(kind: type) -> Callable[[Any], Any]:
    def parse(value: Any) -> Any:
        parsed = _decode(value) if isinstance(value, str) else _WRONG
        return parsed if isinstance(parsed, kind) and not too_deep(parsed, _MAX_DEPTH) else _WRONG

    return parse


_CONVERSIONS: Final[dict[str, Callable[[Any], Any]]] = {
    "array": _container(list),
    "boolean": _boolean,
    "integer": _integer,
    "number": _number,
    "object": _container(dict),
}
