"""JSON values checked against the client's own schema, as lenient as a tool's author is careless."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from operator import ge, gt, le, lt
from typing import Any, Final, NamedTuple

from dragoman.schema.describe import names, show
from dragoman.schema.refs import Refs
from dragoman.schema.spell import JSON_TYPES, fits, same, spell, type_of
from dragoman.schema.walk import Schema

_MAX_DEPTH: Final = 60  # what lies deeper is taken as right
_MAX_STEPS: Final = 20_000

Problems = Iterator[str]
Key = str | int | None  # none: it is the value itself
Holds = Callable[["Validator", Any, Schema, int], bool]


class Rule(NamedTuple):
    """What a keyword demands: whether a value of that node has it at this depth, and what to say if not."""

    holds: Holds
    problems: Callable[[Validator, Any, Schema, str, int], Problems]


class Plan(NamedTuple):
    """One node, spelled, with the rules that its keywords call for."""

    node: Schema
    types: list[str]
    kinds: frozenset[type]  # what values of these types are in Python, if they are spelled as is usual
    rules: tuple[Rule, ...]


_ANYTHING: Final = Plan({}, [], frozenset(), ())


class Flat(NamedTuple):
    """An object, as most tools take one: what is known of each of its members alone, and which must be given."""

    members: dict[str, Plan]
    required: frozenset[str]


class Document:
    """A client's schema, read once and asked often."""

    def __init__(self, schema: Any) -> None:
        self.root = schema
        self._refs = Refs(schema)
        self.plans: dict[int, Plan] = {}  # by the identity of the node
        self.flats: dict[int, Flat | None] = {}  # by that of the node in one spelling

    def plan(self, schema: Any) -> Plan:
        """The node and its rules; `true`, and what is no schema, allow everything."""
        if not isinstance(schema, dict):
            return _ANYTHING
        found = self.plans.get(id(schema))
        if found is None:
            node = spell(schema, "", [])
            types = node.get("type", [])
            rules = tuple(_RULES[key] for key in node if key in _RULES)
            found = self.plans[id(schema)] = Plan(node, types, _kinds(types), rules)
        return found

    def flat(self, node: Schema) -> Flat | None:
        """None if an object of that node cannot be judged member by member. A node stays where its plan is kept."""
        if id(node) not in self.flats:
            self.flats[id(node)] = self._flatten(node)
        return self.flats[id(node)]

    def _flatten(self, node: Schema) -> Flat | None:
        if node.keys() & _DEEPER or "properties" not in node:
            return None
        plans = {name: self.plan(sub) for name, sub in node["properties"].items()}
        members = {name: plan for name, plan in plans.items() if plan.kinds and not plan.node.keys() & _DEEP}
        return Flat(members, frozenset(node.get("required", ())))

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
        self._plans = document.plans
        self._flats = document.flats
        self._whole = whole
        self._steps = 0

    @property
    def tired(self) -> bool:
        """Whether the schema fans out so wildly that the judgement was broken off."""
        return self._steps > _MAX_STEPS

    def ok(self, value: Any, schema: Any, depth: int = 0) -> bool:
        """Whether there are no `problems`; it takes the same steps to the first of them, and is quicker."""
        self._steps += 1
        if schema is False:
            return False
        if depth > _MAX_DEPTH or self._steps > _MAX_STEPS:
            return True
        node, types, kinds, rules = self._plans.get(id(schema)) or self.document.plan(schema)
        kind = type(value)
        if types and kind not in kinds and not self.typed(value, types):
            return False
        if kind is dict:
            flat = self._flats.get(id(node)) or self.document.flat(node)
            if flat is not None and self._fits(value, flat, depth):
                self._steps += len(value)
                return True
        for rule in rules:  # noqa: SIM110 (to make a generator takes longer)
            if not rule.holds(self, value, node, depth + 1):
                return False
        return True

    def _fits(self, value: dict[str, Any], flat: Flat, depth: int) -> bool:
        """Whether all is plainly right; only the rules can tell that something is wrong."""
        members = flat.members
        for name, sub in value.items():
            plan = members.get(name)
            if plan is None or type(sub) not in plan.kinds:
                return False
            for rule in plan.rules:
                if not rule.holds(self, sub, plan.node, depth):
                    return False
        return value.keys() >= flat.required

    def problems(self, value: Any, schema: Any, path: str = "", depth: int = 0) -> Problems:
        """What is wrong with the value, each with its path."""
        self._steps += 1
        if schema is False:
            yield f"{path or 'arguments'}: must not be given"
        elif depth <= _MAX_DEPTH and not self.tired:
            node, types, _, rules = self.document.plan(schema)
            if types and not self.typed(value, types):
                yield f"{path or 'arguments'}: expected {' or '.join(types)}, got {_kind(value)}"
                return
            for rule in rules:
                yield from rule.problems(self, value, node, path, depth + 1)

    def typed(self, value: Any, types: list[str]) -> bool:
        if type_of(value) in types:
            return True
        if self._whole and isinstance(value, float):
            return False
        for kind in types:  # noqa: SIM110 (mostly there is one, and to make a generator takes longer)
            if fits(value, kind):
                return True
        return False


def _kinds(types: list[str]) -> frozenset[type]:
    kinds = frozenset(JSON_TYPES[name] for name in types)
    return kinds | {int} if float in kinds else kinds


def below(path: str, key: Key) -> str:
    """The path of a member."""
    if key is None:
        return path
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def _kind(value: Any) -> str:
    return f"{type_of(value)} {show(value)}" if isinstance(value, int | float) else type_of(value)


def _plain(holds: Holds, text: Callable[[Any, Schema], str]) -> Rule:
    """A rule for the value alone, and what it says."""

    def problems(validator: Validator, value: Any, node: Schema, path: str, depth: int) -> Problems:
        if not holds(validator, value, node, depth):
            yield f"{path or 'arguments'}: {text(value, node)}"

    return Rule(holds, problems)


def _inner(find: Callable[[Document, Any, Schema], list[tuple[Key, Any, Any]]]) -> Rule:
    """A rule for members of the value: each with its key and the schema that it must fit."""

    def check(validator: Validator, value: Any, node: Schema, depth: int) -> bool:
        for _, sub, schema in find(validator.document, value, node):  # noqa: SIM110 (as above)
            if not validator.ok(sub, schema, depth):
                return False
        return True

    def problems(validator: Validator, value: Any, node: Schema, path: str, depth: int) -> Problems:
        for key, sub, schema in find(validator.document, value, node):
            yield from validator.problems(sub, schema, below(path, key), depth)

    return Rule(check, problems)


def _union(name: str) -> Rule:
    """A value that fits no branch is judged by the only one that is not null."""

    def solid(validator: Validator, node: Schema) -> list[Any]:
        spelled = validator.document.spelled
        return [branch for branch in node[name] if spelled(branch).get("type") != ["null"]]

    def fits_any(validator: Validator, value: Any, node: Schema, depth: int) -> bool:
        return any(validator.ok(value, branch, depth) for branch in node[name])

    def check(validator: Validator, value: Any, node: Schema, depth: int) -> bool:
        if fits_any(validator, value, node, depth):
            return True
        branches = solid(validator, node)
        return len(branches) == 1 and validator.ok(value, branches[0], depth)

    def problems(validator: Validator, value: Any, node: Schema, path: str, depth: int) -> Problems:
        if fits_any(validator, value, node, depth):
            return
        branches = solid(validator, node)
        if len(branches) == 1:
            yield from validator.problems(value, branches[0], path, depth)
        else:
            yield f"{path or 'arguments'}: matches none of the {len(node[name])} alternatives"

    return Rule(check, problems)


def _listed(_: Validator, value: Any, node: Schema, _depth: int) -> bool:
    if type(value) is str:
        return value in node["enum"]
    return any(same(value, one) for one in node["enum"])


def _all_given(_: Validator, value: Any, node: Schema, _depth: int) -> bool:
    return not isinstance(value, dict) or all(map(value.__contains__, node["required"]))


def _missing(value: dict[str, Any], node: Schema) -> str:
    return f"{names([name for name in node['required'] if name not in value])} must be given"


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
    def holds(_: Validator, value: Any, node: Schema, _depth: int) -> bool:
        return type(value) is not kind or not wrong(len(value), node[key])

    return _plain(holds, lambda _, node: f"{text} {show(node[key])}")


def _bound(key: str, wrong: Callable[[Any, Any], bool], text: str) -> Rule:
    def holds(_: Validator, value: Any, node: Schema, _depth: int) -> bool:
        return type(value) not in _NUMBER or not wrong(value, node[key])

    return _plain(holds, lambda _, node: f"{text} {show(node[key])}")


_NUMBER: Final = (int, float)
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

#: What leads from a value to its members; of a leaf nothing does.
_DEEP: Final = frozenset((
    "$ref", "additionalProperties", "allOf", "anyOf", "items", "oneOf", "prefixItems", "properties", "required",
))  # fmt: skip
#: What an object may have to fulfil beside what its own members must.
_DEEPER: Final = _RULES.keys() - {"properties", "required", "additionalProperties"}
