"""A lenient JSON Schema validator for tool arguments.

It tolerates the mistakes that tool schemas have in practice; `schema.strict` applies the standard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from operator import ge, gt, le, lt
from typing import Any, Final, NamedTuple

from dragoman.schema.describe import join_names, show
from dragoman.schema.normalize import fits, normalize, same, type_of
from dragoman.schema.walk import Refs, Schema

_MAX_DEPTH: Final = 60  # deeper values are accepted unchecked
_MAX_STEPS: Final = 20_000

Problems = Iterator[str]
Key = str | int | None  # None: the value itself
#: Yields the problems that a keyword finds: validator, value, node, path, depth.
Rule = Callable[["Validator", Any, Schema, str, int], Problems]


class NodePlan(NamedTuple):
    """A normalized node with the rules for its keywords."""

    node: Schema
    types: list[str]
    rules: tuple[Rule, ...]


_ANYTHING: Final = NodePlan({}, [], ())


class Document:
    """A client's schema, with its nodes normalized on first use."""

    def __init__(self, schema: Any) -> None:
        self.root = schema
        self._refs = Refs(schema)
        self._plans: dict[int, NodePlan] = {}  # by the identity of the node

    def plan(self, schema: Any) -> NodePlan:
        """Return the node and its rules; `true`, and anything that is not a schema, allows every value."""
        if not isinstance(schema, dict):
            return _ANYTHING
        found = self._plans.get(id(schema))
        if found is None:
            node = normalize(schema, "", [])
            rules = tuple(_RULES[key] for key in node if key in _RULES)
            found = self._plans[id(schema)] = NodePlan(node, node.get("type", []), rules)
        return found

    def normalized(self, schema: Any) -> Schema:
        """Return the normalized node."""
        return self.plan(schema).node

    def target(self, ref: str) -> Any:
        """Return the target of a reference; `True`, which allows everything, if there is none."""
        found = self._refs.find(ref)
        return True if found is None else self._refs.value(found)


class Validator:
    """Validates the arguments of one call; with `whole` 1.0 is not an integer.

    `oneOf` is treated as `anyOf`, as Google does. `not`, `if`, `pattern` and similar keywords are left to the tool:
    patterns use another regex dialect (ECMA-262), and a hostile one could take exponential time.
    """

    def __init__(self, document: Document, *, whole: bool = False) -> None:
        self.document = document
        self._whole = whole
        self._steps = 0

    @property
    def exhausted(self) -> bool:
        """Whether validation stopped at `_MAX_STEPS`, because the schema branches too much."""
        return self._steps > _MAX_STEPS

    def ok(self, value: Any, schema: Any, depth: int = 0) -> bool:
        """Whether there are no `problems`."""
        return next(self.problems(value, schema, depth=depth), None) is None

    def problems(self, value: Any, schema: Any, path: str = "", depth: int = 0) -> Problems:
        """Yield the problems of the value, each with its path."""
        self._steps += 1
        if schema is False:
            yield f"{path or 'arguments'}: must not be given"
        elif depth <= _MAX_DEPTH and not self.exhausted:
            node, types, rules = self.document.plan(schema)
            if types and not self.typed(value, types):
                yield f"{path or 'arguments'}: expected {' or '.join(types)}, got {_kind(value)}"
                return
            for rule in rules:
                yield from rule(self, value, node, path, depth + 1)

    def typed(self, value: Any, types: list[str]) -> bool:
        if type_of(value) in types:
            return True
        if self._whole and isinstance(value, float):
            return False
        return any(fits(value, kind) for kind in types)


def below(path: str, key: Key) -> str:
    """Return the path of a member."""
    if key is None:
        return path
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def _kind(value: Any) -> str:
    return f"{type_of(value)} {show(value)}" if isinstance(value, int | float) else type_of(value)


def _plain(holds: Callable[[Any, Schema], bool], text: Callable[[Any, Schema], str]) -> Rule:
    """Return a rule for the value itself: a test and the text of the problem."""

    def problems(_: Validator, value: Any, node: Schema, path: str, _depth: int) -> Problems:
        if not holds(value, node):
            yield f"{path or 'arguments'}: {text(value, node)}"

    return problems


def _inner(find: Callable[[Document, Any, Schema], list[tuple[Key, Any, Any]]]) -> Rule:
    """Return a rule for members of the value; `find` returns key, member and schema of each."""

    def problems(validator: Validator, value: Any, node: Schema, path: str, depth: int) -> Problems:
        for key, sub, schema in find(validator.document, value, node):
            yield from validator.problems(sub, schema, below(path, key), depth)

    return problems


def _union(name: str) -> Rule:
    """Return the rule of a union: if no branch fits, report the problems of the only one that is not null."""

    def problems(validator: Validator, value: Any, node: Schema, path: str, depth: int) -> Problems:
        if any(validator.ok(value, branch, depth) for branch in node[name]):
            return
        spelled = validator.document.normalized
        non_null = [branch for branch in node[name] if spelled(branch).get("type") != ["null"]]
        if len(non_null) == 1:
            yield from validator.problems(value, non_null[0], path, depth)
        else:
            yield f"{path or 'arguments'}: matches none of the {len(node[name])} alternatives"

    return problems


def _listed(value: Any, node: Schema) -> bool:
    if type(value) is str:
        return value in node["enum"]
    return any(same(value, one) for one in node["enum"])


def _all_given(value: Any, node: Schema) -> bool:
    return not isinstance(value, dict) or all(map(value.__contains__, node["required"]))


def _missing(value: dict[str, Any], node: Schema) -> str:
    return f"{join_names([name for name in node['required'] if name not in value])} must be given"


def _target(document: Document, value: Any, node: Schema) -> list[tuple[Key, Any, Any]]:
    return [(None, value, document.target(node["$ref"]))]


def _all_of(_: Document, value: Any, node: Schema) -> list[tuple[Key, Any, Any]]:
    return [(None, value, member) for member in node["allOf"]]


def _properties(_: Document, value: Any, node: Schema) -> list[tuple[Key, Any, Any]]:
    if not isinstance(value, dict):
        return []
    return [(name, value[name], sub) for name, sub in node["properties"].items() if name in value]


def _additional(_: Document, value: Any, node: Schema) -> list[tuple[Key, Any, Any]]:
    if not isinstance(value, dict) or "patternProperties" in node:
        return []
    known = node.get("properties", {})
    if value.keys() <= known.keys():
        return []
    return [(name, sub, node["additionalProperties"]) for name, sub in value.items() if name not in known]


def _prefix(_: Document, value: Any, node: Schema) -> list[tuple[Key, Any, Any]]:
    if not isinstance(value, list):
        return []
    pairs = zip(value, node["prefixItems"], strict=False)
    return [(index, one, sub) for index, (one, sub) in enumerate(pairs)]


def _items(_: Document, value: Any, node: Schema) -> list[tuple[Key, Any, Any]]:
    if not isinstance(value, list):
        return []
    start = len(node.get("prefixItems", ()))
    return [(index, one, node["items"]) for index, one in enumerate(value[start:], start)]


def _size(key: str, kind: type[Sized], wrong: Callable[[Any, Any], bool], text: str) -> Rule:
    return _plain(
        lambda value, node: type(value) is not kind or not wrong(len(value), node[key]),
        lambda _, node: f"{text} {show(node[key])}",
    )


def _bound(key: str, wrong: Callable[[Any, Any], bool], text: str) -> Rule:
    return _plain(
        lambda value, node: type(value) not in (int, float) or not wrong(value, node[key]),
        lambda _, node: f"{text} {show(node[key])}",
    )


_RULES: Final[dict[str, Rule]] = {
    "$ref": _inner(_target),
    "additionalProperties": _inner(_additional),
    "allOf": _inner(_all_of),
    "anyOf": _union("anyOf"),
    "enum": _plain(_listed, lambda _, node: f"must be one of {show(node['enum'])}"),
    "exclusiveMaximum": _bound("exclusiveMaximum", ge, "must be below"),
    "exclusiveMinimum": _bound("exclusiveMinimum", le, "must be above"),
    "items": _inner(_items),
    "maxItems": _size("maxItems", list, gt, "the number of items must be at most"),
    "maxLength": _size("maxLength", str, gt, "the length must be at most"),
    "maxProperties": _size("maxProperties", dict, gt, "the number of properties must be at most"),
    "maximum": _bound("maximum", gt, "must be at most"),
    "minItems": _size("minItems", list, lt, "the number of items must be at least"),
    "minLength": _size("minLength", str, lt, "the length must be at least"),
    "minProperties": _size("minProperties", dict, lt, "the number of properties must be at least"),
    "minimum": _bound("minimum", lt, "must be at least"),
    "oneOf": _union("oneOf"),
    "prefixItems": _inner(_prefix),
    "properties": _inner(_properties),
    "required": _plain(_all_given, _missing),
}
