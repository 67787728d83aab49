"""Generate values from schemas: arguments and JSON answers that are valid, and use the user's text where possible.

`fit_*` and `sample_*` generate scalars from a schema alone: numbers within bounds, strings by format, pattern and
length.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.emulator.model.json_schema import (
    INFINITE_HEIGHT,
    SchemaNode,
    bounds,
    conforms,
    fits_number,
    height,
    items_of,
    json_equal,
    merge,
    resolve,
    type_of,
    types_of,
    union_of,
    without,
)
from dragoman.emulator.model.regex import matches, sample_pattern
from dragoman.emulator.model.user_text import TextValues

_FORMATS = {
    "date-time": "2026-01-01T00:00:00Z",
    "date": "2026-01-01",
    "time": "00:00:00Z",
    "duration": "PT1S",
    "email": "user@example.com",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "uri-reference": "/example",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "127.0.0.1",
    "ipv6": "::1",
    "hostname": "example.com",
    "byte": "AAAA",
    "regex": ".*",
    "json-pointer": "/a",
}
#: Names of properties that get ".", a folder that always exists.
_FOLDERS = frozenset(("path", "dir", "dir_path", "directory", "folder", "root", "cwd"))
_PATTERN_TRIES = 72


def fit_number(value: float, node: SchemaNode, kind: str) -> float:
    """Return the nearest number that the bounds and `multipleOf` allow, as far as there is one."""
    low, low_open, high, high_open = bounds(node)
    if low is not None and (value < low or (low_open and value == low)):
        value = low + 1 if low_open else low
    if high is not None and (value > high or (high_open and value == high)):
        value = high - 1 if high_open else high
    step = node.get("multipleOf")
    if step:
        value = math.ceil(value / step) * step
    return _as_kind(value, kind)


def sample_number(node: SchemaNode, kind: str, variant: int = 0) -> float:
    """Return a small number that fits; a different one for each variant, as far as possible."""
    low, low_open, high, high_open = bounds(node)
    step = node.get("multipleOf") or (1 if kind == "integer" else 0)
    if not step and low is not None and high is not None and high - low <= 1:
        share = (variant + 1) / (variant + 2)
        return low if low == high else _as_kind(low + (high - low) * share, kind)
    step = step or 1
    if low is None and high is not None and high < 1:
        count = math.floor(high / step)
        count -= high_open and count * step == high
        return _as_kind((count - variant) * step, kind)
    start = 1 if low is None else low
    count = math.ceil(start / step)
    count += low is not None and low_open and count * step == low
    found = _as_kind((count + variant) * step, kind)
    # Rounding can miss a multiple; zero is a multiple of everything.
    return found if fits_number(found, node) or not fits_number(0, node) else 0


def fit_text(text: str, node: SchemaNode) -> str:
    text = text.ljust(node.get("minLength", 0), "x")
    return text[: node.get("maxLength", len(text))]


def sample_text(node: SchemaNode, name: str, variant: int = 0) -> str:
    """Return a string of the format or pattern, else the property's name, adjusted in length."""
    pattern = node.get("pattern")
    if pattern is not None:
        for more in range(_PATTERN_TRIES):
            found = sample_pattern(pattern, more=more, variant=variant)
            if matches(pattern, found) and fit_text(found, node) == found:
                return found
    text = _FORMATS.get(str(node.get("format", "")), "." if name in _FOLDERS else name or "text")
    if not variant:
        return fit_text(text, node)
    mark = _letters(variant)
    room = max(0, node.get("maxLength", len(text) + len(mark)) - len(mark))
    return fit_text(mark + text[:room], node)


def _letters(number: int) -> str:
    """Return a, b, … z, ba, …: a different text for each number."""
    digits = ""
    while number or not digits:
        number, digit = divmod(number, 26)
        digits = chr(ord("a") + digit) + digits
    return digits


def _as_kind(value: float, kind: str) -> float:
    whole = kind == "integer" or float(value).is_integer()
    return int(value) if whole else value


#: Below this depth only required values are filled, by the shortest branch.
_REQUIRED_ONLY_DEPTH = 4
_MAX_DEPTH = 24
#: After this many values everything counts as deep; after three times as many, as too deep to fill at all.
_MAX_VALUES = 1000
_MAX_ITEMS = 1000


def fill_arguments(schema: Mapping[str, Any], user_text: str) -> dict[str, Any]:
    """Return the arguments of a function: required ones, and those that the text clearly gives."""
    value = _Filler(schema, TextValues(user_text)).fill(schema, "")
    return value if isinstance(value, dict) else {}


def fill_value(schema: Mapping[str, Any], user_text: str) -> Any:
    """Return an instance of a schema with every property filled."""
    return _Filler(schema, TextValues(user_text), everything=True).fill(schema, "value")


class _Filler:
    """Fills one schema document; `root` is the base of its references.

    For a value that is not required, None means that the text says nothing about it. Different variants give
    different values for the same schema, as far as it allows them.
    """

    def __init__(self, root: SchemaNode, text_values: TextValues, *, everything: bool = False) -> None:
        self._root = root
        self._text_values = text_values
        self._everything = everything
        self._filled = 0

    def fill(self, schema: Any, name: str, required: bool = True, depth: int = 0, variant: int = 0) -> Any:
        self._filled += 1
        if self._filled > _MAX_VALUES:
            depth = max(depth, _REQUIRED_ONLY_DEPTH + 1 if self._filled < 3 * _MAX_VALUES else _MAX_DEPTH + 1)
        node = resolve(self._root, schema)
        if "const" in node:
            return node["const"] if required else None
        if node.get("enum"):
            return self._from_enum(node, required, variant)
        keyword, branches = union_of(node)
        if branches and depth < _MAX_DEPTH:
            return self._from_union(node, keyword, branches, name, required, depth, variant)
        if depth > _REQUIRED_ONLY_DEPTH and "null" in types_of(node):
            return None
        match type_of(node):
            case "object":
                return self._object(node, required, depth, variant)
            case "array":
                return self._array(node, name, required, depth, variant)
            case "integer" | "number" as kind:
                return self._number(node, name, kind, required, variant)
            case "boolean":
                return (node.get("default") is True) != bool(variant % 2) if required else None
            case "null":
                return None
        return self._string(node, name, required, variant)

    def _from_enum(self, node: SchemaNode, required: bool, variant: int) -> Any:
        rest = without(node, "enum")
        values = [value for value in node["enum"] if conforms(value, rest, self._root)] or node["enum"]
        mentioned = [
            value for value in values if isinstance(value, str) and self._text_values.mentions(value)
        ]
        if not required:
            return mentioned[0] if mentioned else None
        real = [value for value in values if value is not None]
        ordered = [*mentioned, *(value for value in real if value not in mentioned)] or [None]
        return ordered[variant % len(ordered)]

    def _from_union(
        self,
        node: SchemaNode,
        keyword: str,
        branches: Sequence[Any],
        name: str,
        required: bool,
        depth: int,
        variant: int,
    ) -> Any:
        """Return the value of the first branch that gives a valid one.

        Null comes last; deep in a document the branch with the smallest height comes first.
        """
        base = without(node, keyword)
        ordered = sorted(branches, key=lambda branch: type_of(resolve(self._root, branch)) == "null")
        if depth >= _REQUIRED_ONLY_DEPTH or height(self._root, ordered[0]) >= INFINITE_HEIGHT:
            ordered.sort(key=lambda branch: height(self._root, branch))
        options = [merge(base, resolve(self._root, branch)) for branch in ordered]
        first = None
        for index in range(len(options)):
            value = self.fill(options[(index + variant) % len(options)], name, required, depth + 1, variant)
            if (value is not None or required) and conforms(value, node, self._root):
                return value
            first = value if first is None else first
        return first

    def _object(self, node: SchemaNode, required: bool, depth: int, variant: int) -> dict[str, Any] | None:
        if not required:
            return None
        if depth > _MAX_DEPTH:
            return {}
        named = node.get("properties") or {}
        needed = self._needed(node)
        filled: dict[str, Any] = {}
        for name, schema in named.items():
            due = name in needed or (
                self._everything and depth < _REQUIRED_ONLY_DEPTH and schema is not False
            )
            value = self.fill(schema, name, due, depth + 1, variant)
            if name in needed or value is not None:
                filled[name] = value
        for name in needed:
            if name not in named:
                filled[name] = self.fill(_property_schema(node, name), name, True, depth + 1, variant)
        return self._sized(node, needed, filled, depth, variant)

    def _needed(self, node: SchemaNode) -> list[str]:
        """Return the required names, including those that `dependentRequired` adds."""
        needed = [name for name in node.get("required") or () if isinstance(name, str)]
        follow_ups = node.get("dependentRequired") or {}
        if self._everything:
            needed += [name for names in follow_ups.values() for name in names]
        for name in needed:
            needed += [other for other in follow_ups.get(name, ()) if other not in needed]
        return list(dict.fromkeys(needed))

    def _sized(
        self, node: SchemaNode, needed: Sequence[str], filled: dict[str, Any], depth: int, variant: int
    ) -> dict[str, Any]:
        """Add or remove properties until their number is within the bounds of the schema.

        Optional properties are added first, then additional ones.
        """
        named = node.get("properties") or {}
        spare = [name for name in named if name not in filled and named[name] is not False]
        keys = iter([*spare, *(self._key(node, depth, number) for number in range(1, 50))])
        while len(filled) < node.get("minProperties", 0) and (key := next(keys, "")):
            filled.setdefault(key, self.fill(_property_schema(node, key), key, True, depth + 1, variant))
        for name in list(reversed(filled)):
            if len(filled) > node.get("maxProperties", len(filled)) and name not in needed:
                del filled[name]
        return filled

    def _key(self, node: SchemaNode, depth: int, number: int) -> str:
        if "propertyNames" in node:
            return str(
                self.fill(
                    {"type": "string", "allOf": [node["propertyNames"]]}, "key", True, depth + 1, number
                )
            )
        patterns = list(node.get("patternProperties") or {})
        if patterns and node.get("additionalProperties") is False:
            key = sample_pattern(patterns[0], variant=number)
            return f"{key}{number}" if matches(patterns[0], f"{key}{number}") else key
        return f"key{number}"

    def _array(
        self, node: SchemaNode, name: str, required: bool, depth: int, variant: int
    ) -> list[Any] | None:
        if not required:
            return None
        first, rest = items_of(node)
        least = node.get("minItems", 0)
        offered = self._text_values.count_for(name, str(resolve(self._root, rest).get("format", "")))
        wanted = max(least, len(first), min(offered, _MAX_ITEMS) or 1)
        if depth >= _REQUIRED_ONLY_DEPTH or rest is False or height(self._root, rest) >= INFINITE_HEIGHT:
            wanted = max(least, len(first))
        wanted = min(wanted, node.get("maxItems", wanted), max(least, _MAX_ITEMS))
        schemas = [*first, *[rest] * (wanted - len(first))][:wanted]
        if "contains" in node and schemas and not first:
            schemas[0] = {"allOf": [node["contains"], rest]}
        return self._items(schemas, name, depth, variant, unique=bool(node.get("uniqueItems")), least=least)

    def _items(
        self, schemas: Sequence[Any], name: str, depth: int, variant: int, *, unique: bool, least: int
    ) -> list[Any]:
        items: list[Any] = []
        for schema in schemas:
            value = self.fill(schema, name, True, depth + 1, variant)
            tries = iter(range(variant + 1, variant + len(schemas) + 8))
            while unique and any(json_equal(value, other) for other in items) and (n := next(tries, 0)):
                value = self.fill(schema, name, True, depth + 1, n)
            if not unique or len(items) < least or not any(json_equal(value, other) for other in items):
                items.append(value)
        return items

    def _number(self, node: SchemaNode, name: str, kind: str, required: bool, variant: int) -> Any:
        mentioned = self._text_values.number_for(name, required=required)
        if mentioned is None and not required:
            return None
        wanted = mentioned if mentioned is not None else node.get("default")
        if isinstance(wanted, bool) or not isinstance(wanted, int | float) or variant:
            return sample_number(node, kind, variant)
        value = fit_number(wanted, node, kind)
        return value if conforms(value, node, self._root) else sample_number(node, kind, variant)

    def _string(self, node: SchemaNode, name: str, required: bool, variant: int) -> str | None:
        form = str(node.get("format", ""))
        mentioned = self._text_values.string_for(name, form, required=required)
        if mentioned is None and not required:
            return None
        default = node.get("default")
        for wanted in (mentioned, default) if not variant else ():
            if isinstance(wanted, str) and conforms(fitted := fit_text(wanted, node), node, self._root):
                return fitted
        return sample_text(node, name, variant)


def _property_schema(node: SchemaNode, name: str) -> Any:
    """Return the schema of a property: by name, by pattern, or that of additional properties."""
    named = node.get("properties") or {}
    if name in named:
        return named[name]
    patterns = node.get("patternProperties") or {}
    found = next((schema for pattern, schema in patterns.items() if matches(pattern, name)), None)
    return found if found is not None else node.get("additionalProperties", {})
