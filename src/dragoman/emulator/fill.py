"""Arguments out of a schema and the user's words: valid against the schema, sensible where the words help."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.emulator.supply import Supply

_MAX_DEPTH = 8

_FORMATS = {
    "date-time": "2026-01-01T00:00:00Z",
    "date": "2026-01-01",
    "time": "00:00:00Z",
    "email": "user@example.com",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "127.0.0.1",
    "ipv6": "::1",
    "hostname": "example.com",
    "byte": "AAAA",
}


def fill_arguments(schema: Mapping[str, Any], words: str) -> dict[str, Any]:
    """An argument object for a function: what is required, and what the words clearly give."""
    value = _Filler(schema, Supply(words)).fill(schema, "", required=True, depth=0)
    return value if isinstance(value, dict) else {}


def fill_value(schema: Mapping[str, Any], words: str) -> Any:
    """One instance of a schema, every property filled."""
    return _Filler(schema, Supply(words), everything=True).fill(schema, "value", required=True, depth=0)


class _Filler:
    """Walks one schema document; `root` is where its references lead."""

    def __init__(self, root: Mapping[str, Any], supply: Supply, *, everything: bool = False) -> None:
        self._root = root
        self._supply = supply
        self._everything = everything

    def fill(self, schema: Any, name: str, *, required: bool, depth: int) -> Any:
        """A value, or None for an optional property the words say nothing about."""
        node = self._resolve(schema, depth)
        if "const" in node:
            return node["const"]
        if node.get("enum"):
            return self._from_enum(node["enum"], required)
        kind = _type_of(node)
        if kind == "object":
            return self._object(node, required, depth)
        if kind == "array":
            return self._array(node, name, required, depth)
        if kind in ("integer", "number"):
            return self._number(node, name, kind, required)
        if kind == "boolean":
            return bool(node.get("default", False)) if required else None
        if kind == "null":
            return None
        return self._string(node, name, required)

    def _resolve(self, schema: Any, depth: int) -> Mapping[str, Any]:
        """The node itself with references followed, the first real branch of a union, `allOf` merged."""
        node: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
        for _ in range(_MAX_DEPTH):
            if "$ref" in node:
                node = _follow(self._root, node["$ref"])
            elif branches := (node.get("anyOf") or node.get("oneOf")):
                node = _without(node, "anyOf", "oneOf") | dict(_first_real(branches, depth))
            elif parts := node.get("allOf"):
                node = _merge(_without(node, "allOf"), [self._resolve(part, depth) for part in parts])
            else:
                break
        return node

    def _from_enum(self, values: Sequence[Any], required: bool) -> Any:
        said = next(
            (value for value in values if isinstance(value, str) and self._supply.mentions(value)), None
        )
        if said is not None or not required:
            return said
        return next((value for value in values if value is not None), None)

    def _object(self, node: Mapping[str, Any], required: bool, depth: int) -> dict[str, Any] | None:
        if depth > _MAX_DEPTH or (not required and not self._everything):
            return {} if required else None
        needed = set(node.get("required", ()))
        filled: dict[str, Any] = {}
        for name, schema in (node.get("properties") or {}).items():
            due = name in needed or (self._everything and depth < _MAX_DEPTH // 2)
            value = self.fill(schema, name, required=due, depth=depth + 1)
            if value is not None or (name in needed):
                filled[name] = value
        return filled

    def _array(self, node: Mapping[str, Any], name: str, required: bool, depth: int) -> list[Any] | None:
        if not required:
            return None
        if isinstance(node.get("prefixItems"), list):
            return [self.fill(item, name, required=True, depth=depth + 1) for item in node["prefixItems"]]
        items = node.get("items")
        if depth > _MAX_DEPTH or not isinstance(items, Mapping):
            return ["item"] * int(node.get("minItems", 0))
        wanted = max(int(node.get("minItems", 0)), 1)
        wanted = min(wanted, int(node.get("maxItems", wanted)))
        return [self.fill(items, name, required=True, depth=depth + 1) for _ in range(wanted)]

    def _number(self, node: Mapping[str, Any], name: str, kind: str, required: bool) -> Any:
        said = self._supply.number_for(name, required=required)
        if said is None and not required:
            return None
        if said is None:
            said = node.get("default", node.get("minimum", 1))
        value = _clamp(said if isinstance(said, int | float) else 1, node)
        step = node.get("multipleOf")
        if isinstance(step, int | float) and step > 0:
            value = -(-value // step) * step
        return int(value) if kind == "integer" or float(value).is_integer() else value

    def _string(self, node: Mapping[str, Any], name: str, required: bool) -> str | None:
        said = self._supply.string_for(name, str(node.get("format", "")), required=required)
        if said is None:
            if not required:
                return None
            default = node.get("default")
            said = (
                default
                if isinstance(default, str)
                else _FORMATS.get(str(node.get("format", "")), name or "text")
            )
        return _fit_length(said, node)


def _follow(root: Mapping[str, Any], reference: Any) -> Mapping[str, Any]:
    node: Any = root
    for piece in str(reference).removeprefix("#").split("/"):
        if piece:
            key = piece.replace("~1", "/").replace("~0", "~")
            node = node.get(key, {}) if isinstance(node, Mapping) else {}
    return node if isinstance(node, Mapping) else {}


def _without(node: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key not in keys}


def _first_real(branches: Sequence[Any], depth: int) -> Mapping[str, Any]:
    """The first branch that is not null; deep down a scalar one, so that recursion ends."""
    real = [branch for branch in branches if isinstance(branch, Mapping) and _type_of(branch) != "null"]
    if depth > _MAX_DEPTH // 2:
        real.sort(key=lambda branch: "$ref" in branch or _type_of(branch) in ("object", "array"))
    return real[0] if real else {"type": "null"}


def _merge(node: dict[str, Any], parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    properties = dict(node.get("properties") or {})
    required = list(node.get("required") or ())
    for part in parts:
        properties.update(part.get("properties") or {})
        required.extend(part.get("required") or ())
        node = {**part, **node}
    if properties:
        node |= {"properties": properties, "required": required}
    return node


def _type_of(node: Mapping[str, Any]) -> str:
    kind = node.get("type")
    if isinstance(kind, list):
        kind = next((item for item in kind if str(item).lower() != "null"), "null")
    if isinstance(kind, str):
        return kind.lower()
    if "properties" in node:
        return "object"
    return "array" if "items" in node else "string"


def _clamp(value: float, node: Mapping[str, Any]) -> float:
    low, high = node.get("minimum"), node.get("maximum")
    over, under = node.get("exclusiveMinimum"), node.get("exclusiveMaximum")
    if isinstance(low, int | float):
        value = max(value, low + 1 if over is True else low)
    if isinstance(over, int | float) and not isinstance(over, bool) and value <= over:
        value = over + 1
    if isinstance(high, int | float):
        value = min(value, high - 1 if under is True else high)
    if isinstance(under, int | float) and not isinstance(under, bool) and value >= under:
        value = under - 1
    return value


def _fit_length(text: str, node: Mapping[str, Any]) -> str:
    text = text.ljust(int(node.get("minLength", 0)), "x")
    limit = node.get("maxLength")
    pattern = node.get("pattern")
    if isinstance(pattern, str) and not _matches(pattern, text):
        text = next((sample for sample in ("a", "abc", "1", "A1", "a-b") if _matches(pattern, sample)), text)
    return text[: int(limit)] if limit is not None else text


def _matches(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return True
