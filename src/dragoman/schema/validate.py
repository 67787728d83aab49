"""JSON values checked against the client's own schema, as lenient as a tool's author is careless."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from dragoman.schema.describe import names, show
from dragoman.schema.refs import Refs
from dragoman.schema.spell import fits, same, spell, type_of
from dragoman.schema.walk import Schema

_MAX_DEPTH: Final = 60  # what lies deeper is taken as right
_MAX_STEPS: Final = 20_000

Problems = Iterator[str]
Rule = Callable[["Validator", Any, Schema, str, int], Problems]


class Plan(NamedTuple):
    """One node, spelled, with the rules that its keywords call for."""

    node: Schema
    types: list[str]
    rules: tuple[Rule, ...]


_ANYTHING: Final = Plan({}, [], ())


class Document:
    """A client's schema, read once and asked often."""

    def __init__(self, schema: Any) -> None:
        self.root = schema
        self._refs = Refs(schema)
        self._plans: dict[int, Plan] = {}

    def plan(self, schema: Any) -> Plan:
        """The node and its rules; `true`, and what is no schema, allow everything."""
        if not isinstance(schema, dict):
            return _ANYTHING
        found = self._plans.get(id(schema))
        if found is None:
            node = spell(schema, "", [])
            found = Plan(node, node.get("type", []), tuple(_RULES[key] for key in node if key in _RULES))
            self._plans[id(schema)] = found
        return found

    def spelled(self, schema: Any) -> Schema:
        """The node in one spelling."""
        return self.plan(schema).node

    def target(self, ref: str) -> Any:
        """What a reference leads to; everything is allowed if it leads nowhere."""
        found = self._refs.find(ref)
        return True if found is None else self._refs.value(found)


class Validator:
    """Judges the values of one call; `whole` wants integers spelled without a fraction.

    `oneOf` is read as `anyOf`, as Google reads it to the model; `not`, `if`, `pattern` and the like are left
    to the tool: patterns are of another regex dialect, and a hostile one would never end.
    """

    def __init__(self, document: Document, *, whole: bool = False) -> None:
        self.document = document
        self._whole = whole
        self._steps = 0

    @property
    def tired(self) -> bool:
        """Whether the schema fans out so wildly that the judgement was broken off."""
        return self._steps > _MAX_STEPS

    def ok(self, value: Any, schema: Any, depth: int = 0) -> bool:
        return next(self.problems(value, schema, "", depth), None) is None

    def problems(self, value: Any, schema: Any, path: str = "", depth: int = 0) -> Problems:
        """What is wrong with the value, each with its path."""
        self._steps += 1
        if schema is False:
            yield f"{path or 'arguments'}: must not be given"
        elif depth <= _MAX_DEPTH and not self.tired:
            node, types, rules = self.document.plan(schema)
            if types and not self.typed(value, types):
                yield f"{path or 'arguments'}: expected {' or '.join(types)}, got {_kind(value)}"
                return
            for rule in rules:
                yield from rule(self, value, node, path, depth + 1)

    def settled(self, value: Any, schema: Any) -> bool:
        """Whether it is right at first sight: of its type, and there is no other rule."""
        plan = self.document.plan(schema)
        right = not plan.rules and bool(plan.types) and self.typed(value, plan.types)
        self._steps += right
        return right

    def typed(self, value: Any, types: list[str]) -> bool:
        if type_of(value) in types:
            return True
        if self._whole and isinstance(value, float):
            return False
        for kind in types:  # noqa: SIM110 (mostly there is one, and to make a generator takes longer)
            if fits(value, kind):
                return True
        return False


def below(path: str, key: str | int) -> str:
    """The path of a member."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def _kind(value: Any) -> str:
    return f"{type_of(value)} {show(value)}" if isinstance(value, int | float) else type_of(value)


def _enum(_: Validator, value: Any, node: Schema, path: str, _depth: int) -> Problems:
    if not any(same(value, one) for one in node["enum"]):
        yield f"{path or 'arguments'}: must be one of {show(node['enum'])}"


def _ref(validator: Validator, value: Any, node: Schema, path: str, depth: int) -> Problems:
    yield from validator.problems(value, validator.document.target(node["$ref"]), path, depth)


def _all_of(validator: Validator, value: Any, node: Schema, path: str, depth: int) -> Problems:
    for member in node["allOf"]:
        yield from validator.problems(value, member, path, depth)


def _union(key: str) -> Rule:
    def check(validator: Validator, value: Any, node: Schema, path: str, depth: int) -> Problems:
        branches = node[key]
        if any(validator.ok(value, branch, depth) for branch in branches):
            return
        solid = [branch for branch in branches if validator.document.spelled(branch).get("type") != ["null"]]
        if len(solid) == 1:
            yield from validator.problems(value, solid[0], path, depth)
        else:
            yield f"{path or 'arguments'}: matches none of the {len(branches)} alternatives"

    return check


def _required(_: Validator, value: Any, node: Schema, path: str, _depth: int) -> Problems:
    missing = [name for name in node["required"] if name not in value] if isinstance(value, dict) else []
    if missing:
        yield f"{path or 'arguments'}: {names(missing)} must be given"


def _properties(validator: Validator, value: Any, node: Schema, path: str, depth: int) -> Problems:
    if isinstance(value, dict):
        for name, sub in node["properties"].items():
            if name in value and not validator.settled(value[name], sub):
                yield from validator.problems(value[name], sub, below(path, name), depth)


def _additional(validator: Validator, value: Any, node: Schema, path: str, depth: int) -> Problems:
    if isinstance(value, dict) and "patternProperties" not in node:
        known = node.get("properties", {})
        if value.keys() <= known.keys():
            return
        for name in value:
            if name not in known:
                yield from validator.problems(
                    value[name], node["additionalProperties"], below(path, name), depth
                )


def _prefix(validator: Validator, value: Any, node: Schema, path: str, depth: int) -> Problems:
    if isinstance(value, list):
        for i, (one, sub) in enumerate(zip(value, node["prefixItems"], strict=False)):
            yield from validator.problems(one, sub, below(path, i), depth)


def _items(validator: Validator, value: Any, node: Schema, path: str, depth: int) -> Problems:
    if isinstance(value, list):
        for i in range(len(node.get("prefixItems", ())), len(value)):
            yield from validator.problems(value[i], node["items"], below(path, i), depth)


def _limit(
    key: str,
    kind: type | tuple[type, ...],
    measure: Callable[[Any], Any],
    wrong: Callable[[Any, Any], bool],
    text: str,
) -> Rule:
    def check(_: Validator, value: Any, node: Schema, path: str, _depth: int) -> Problems:
        if isinstance(value, kind) and not isinstance(value, bool) and wrong(measure(value), node[key]):
            yield f"{path or 'arguments'}: {text} {show(node[key])}"

    return check


def _below(a: Any, b: Any) -> bool:
    return bool(a < b)


def _above(a: Any, b: Any) -> bool:
    return bool(a > b)


def _not_above(a: Any, b: Any) -> bool:
    return bool(a <= b)


def _not_below(a: Any, b: Any) -> bool:
    return bool(a >= b)


def _itself(value: Any) -> Any:
    return value


_NUMBER: Final = (int, float)
_RULES: Final[dict[str, Rule]] = {
    "$ref": _ref,
    "additionalProperties": _additional,
    "allOf": _all_of,
    "anyOf": _union("anyOf"),
    "enum": _enum,
    "exclusiveMaximum": _limit("exclusiveMaximum", _NUMBER, _itself, _not_below, "must be below"),
    "exclusiveMinimum": _limit("exclusiveMinimum", _NUMBER, _itself, _not_above, "must be above"),
    "items": _items,
    "maxItems": _limit("maxItems", list, len, _above, "the number of items must be at most"),
    "maxLength": _limit("maxLength", str, len, _above, "the length must be at most"),
    "maxProperties": _limit("maxProperties", dict, len, _above, "the number of properties must be at most"),
    "maximum": _limit("maximum", _NUMBER, _itself, _above, "must be at most"),
    "minItems": _limit("minItems", list, len, _below, "the number of items must be at least"),
    "minLength": _limit("minLength", str, len, _below, "the length must be at least"),
    "minProperties": _limit("minProperties", dict, len, _below, "the number of properties must be at least"),
    "minimum": _limit("minimum", _NUMBER, _itself, _below, "must be at least"),
    "oneOf": _union("oneOf"),
    "prefixItems": _prefix,
    "properties": _properties,
    "required": _required,
}
