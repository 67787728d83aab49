"""The judge of strict mode: jsonschema-rs (the extra `strict`) with the tool's original schema.

Schemas and arguments come from strangers, and jsonschema-rs sets no limit to the work that they cause: references
that fan out take exponential time, long chains of them overflow the native stack. `count_steps` measures that
first. What is too much, and what jsonschema-rs cannot compile, is not judged here, and the verdict says why.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

import msgspec

from dragoman.schema.validate import below
from dragoman.schema.walk import Refs, Schema, children

if TYPE_CHECKING:
    import jsonschema_rs

_MAX_SCHEMA_BYTES: Final = 128 * 1024
_CACHED: Final = 256  # so that the cache stays below 32 MB of keys
_MAX_STEPS: Final = 20_000
_MAX_DEPTH: Final = 256  # of values, subschemas and references together
_MAX_RESOURCES: Final = 32  # subschemas with an `$id`
_MAX_PATTERNS: Final = 256
_MAX_PROBLEMS: Final = 20
_MAX_CHARS: Final = 300
# jsonschema-rs makes all errors of a value at once, and each may quote a part of the schema.
_ERROR_BYTES: Final = 2048
_MAX_EXPLAINED_BYTES: Final = 4 * 1024 * 1024

# The engine `regex` takes linear time, with a factor that grows with the compiled pattern. What it refuses (look-around,
# back-references) is left to `fancy-regex`, which backtracks up to a limit.
_PATTERN_BYTES: Final = 16 * 1024
_LARGE_PATTERN_BYTES: Final = 256 * 1024
_LARGE_PATTERN_STEPS: Final = 16
_MAX_BACKTRACKS: Final = 10_000
_BACKTRACKING_STEPS: Final = 20
_CHARS_PER_STEP: Final = 8
_REGEX_GAVE_UP: Final = ("BacktrackLimitExceeded", "RegexEngineFailure")

_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_NAMES: Final = ("$id", "id", "$anchor", "$dynamicAnchor")
_IN_PLACE: Final = frozenset((
    "allOf", "anyOf", "dependencies", "dependentSchemas", "else", "if", "not", "oneOf", "then",
))  # fmt: skip
_MEMBERS: Final = frozenset(("additionalProperties", "patternProperties", "unevaluatedProperties"))
_ITEMS: Final = frozenset(("additionalItems", "contains", "items", "unevaluatedItems"))
_KEYS: Final = frozenset(("propertyNames",))
_UNEVALUATED: Final = frozenset(("unevaluatedItems", "unevaluatedProperties"))
_UNEVALUATED_VISITS: Final = 4  # and one for each member: subschemas are asked again what they evaluated


class Verdict(NamedTuple):
    """Whether a value is valid, and what is wrong with it as far as that can be said."""

    valid: bool
    problems: tuple[str, ...] = ()
    not_checked: str = ""  # why jsonschema-rs could not tell


def validate_strictly(value: Any, schema: bytes) -> Verdict:
    """The verdict of jsonschema-rs on a value."""
    if len(schema) > _MAX_SCHEMA_BYTES:
        return Verdict(valid=True, not_checked=f"the schema is larger than {_MAX_SCHEMA_BYTES // 1024} KB")
    compiled = _compile(schema)
    if isinstance(compiled, str):
        return Verdict(valid=True, not_checked=compiled)
    try:
        steps = compiled.graph.count_steps(value, compiled.pattern_steps)
        if compiled.validator.is_valid(value):
            return Verdict(valid=True)
        if steps * (len(schema) + _ERROR_BYTES) > _MAX_EXPLAINED_BYTES:
            return Verdict(valid=False)
        errors = list(compiled.validator.iter_errors(value))
    except (TooManySteps, ValueError, RecursionError) as error:
        return Verdict(valid=True, not_checked=f"the arguments cannot be judged: {error}")
    gave_up = next((error for error in errors if type(error.kind).__name__ in _REGEX_GAVE_UP), None)
    if gave_up is not None:
        return Verdict(valid=True, not_checked=f"the arguments cannot be judged: {gave_up.message}")
    return Verdict(valid=False, problems=tuple(map(_describe, errors[:_MAX_PROBLEMS])))


def _describe(error: jsonschema_rs.ValidationError) -> str:
    place = ""
    for key in error.instance_path:
        place = below(place, key)
    return _cut(f"{_cut(place) or 'arguments'}: {error.message}")


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CHARS else f"{text[:_MAX_CHARS]}…"


class _Compiled(NamedTuple):
    validator: jsonschema_rs.Validator
    graph: Graph
    pattern_steps: int  # for so many characters that a pattern is matched with


@lru_cache(maxsize=_CACHED)
def _compile(schema: bytes) -> _Compiled | str:
    """The compiled schema, or why there is none."""
    from jsonschema_rs import FancyRegexOptions, RegexOptions, validator_for

    engines = (
        (RegexOptions(_PATTERN_BYTES, _PATTERN_BYTES), 1),
        (RegexOptions(_LARGE_PATTERN_BYTES, _LARGE_PATTERN_BYTES), _LARGE_PATTERN_STEPS),
        (FancyRegexOptions(_MAX_BACKTRACKS, _LARGE_PATTERN_BYTES, _LARGE_PATTERN_BYTES), _BACKTRACKING_STEPS),
    )
    try:
        graph = Graph(msgspec.json.decode(schema))
        graph.check_unevaluated()
    except (TooManySteps, ValueError, RecursionError) as error:
        return f"the schema cannot be compiled: {error}"
    why = ""
    for engine, pattern_steps in engines:
        try:
            # As text: jsonschema-rs limits the depth of a text, but not that of Python's objects.
            validator = validator_for(
                schema.decode(),
                pattern_options=engine,
                validate_formats=False,
                mask="the value",
                offline=True,
            )
            return _Compiled(validator, graph, pattern_steps)
        except ValueError as error:
            why = _cut(str(error).partition("\n")[0])
    return f"the schema cannot be compiled: {why}"


class TooManySteps(Exception):
    """More steps, or deeper ones, than allowed."""

    def __init__(self) -> None:
        super().__init__("that takes too many steps")


class _Node(NamedTuple):
    """The subschemas of a schema, by the values that they apply to."""

    in_place: list[Any]
    properties: Schema
    members: list[Any]
    names: list[Any]
    prefix: list[Any]
    items: list[Any]
    patterns: int  # that names are matched with
    has_pattern: bool
    is_unevaluated: bool


class Graph:
    """A schema with its references, to count the steps of a validation: one for each subschema and value."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._schemas = list(_all_schemas(root))
        self._nodes: dict[int, _Node] = {}  # by the identity of the schema
        self._named: dict[str, list[Any]] = {}  # by anchor
        self._resources = [Refs(root)]
        for schema in self._schemas:
            self._index(schema)
        patterns = sum(("pattern" in schema) + _count_patterns(schema) for schema in self._schemas)
        if len(self._resources) > _MAX_RESOURCES or patterns > _MAX_PATTERNS:
            raise TooManySteps

    def _index(self, schema: Schema) -> None:
        names = {schema[key].rpartition("#")[2] for key in _NAMES if isinstance(schema.get(key), str)}
        for name in names:
            self._named.setdefault(name, []).append(schema)
        if "$id" in schema or "id" in schema:
            self._resources.append(Refs(schema))

    def count_steps(self, value: Any, pattern_steps: int) -> int:
        """At least the steps that a validation of the value takes."""
        return _Count(self, pattern_steps).visit(self._root, value, 0)

    def check_unevaluated(self) -> None:
        """To compile `unevaluated…` copies every subschema in place, however often it is referred to."""
        count = _Count(self, 1)
        for schema in self._schemas:
            if not _UNEVALUATED.isdisjoint(schema):
                count.visit(schema, None, 0)

    def node(self, schema: Schema) -> _Node:
        found = self._nodes.get(id(schema))
        if found is None:
            found = self._nodes[id(schema)] = self._read(schema)
        return found

    def _read(self, schema: Schema) -> _Node:
        node = _Node(
            in_place=[],
            properties={},
            members=[],
            names=[],
            prefix=[],
            items=[],
            patterns=_count_patterns(schema),
            has_pattern="pattern" in schema,
            is_unevaluated=not _UNEVALUATED.isdisjoint(schema),
        )
        for (keyword, *rest), sub in children(schema):
            if keyword in _IN_PLACE:
                node.in_place.append(sub)
            elif keyword == "properties":
                node.properties[str(rest[0])] = sub
            elif keyword == "prefixItems" or (keyword == "items" and rest):
                node.prefix.append(sub)
            else:
                for keywords, subs in ((_MEMBERS, node.members), (_ITEMS, node.items), (_KEYS, node.names)):
                    if keyword in keywords:
                        subs.append(sub)
        for keyword in _REFERENCES:
            node.in_place.extend(self._targets(schema.get(keyword)))
        return node

    def _targets(self, ref: Any) -> Iterator[Any]:
        """All that a reference may lead to. Base URIs are not resolved: every resource is a candidate."""
        if isinstance(ref, str):
            fragment = ref.partition("#")[2]
            yield from self._named.get(unquote(fragment), ())
            for refs in self._resources:
                target = refs.find(f"#{fragment}")
                if target is not None:
                    yield refs.value(target)


def _count_patterns(schema: Schema) -> int:
    patterns = schema.get("patternProperties")
    return len(patterns) if isinstance(patterns, dict) else 0


def _all_schemas(root: Any) -> Iterator[Schema]:
    waiting = [root]
    while waiting:
        schema = waiting.pop()
        if isinstance(schema, dict):
            yield schema
            waiting.extend(sub for _, sub in children(schema))


class _Count:
    """One count."""

    def __init__(self, graph: Graph, pattern_steps: int) -> None:
        self._graph = graph
        self._pattern_steps = pattern_steps
        self._steps = 0
        self._active: set[tuple[int, int]] = set()  # schemas and values whose subschemas are being visited

    def visit(self, schema: Any, value: Any, depth: int) -> int:
        """The steps so far."""
        self._steps += 1
        self._check(depth)
        if not isinstance(schema, dict):
            return self._steps
        node = self._graph.node(schema)
        if node.in_place:
            self._visit_in_place(node, (id(schema), id(value)), value, depth + 1)
        if isinstance(value, dict):
            self._visit_object(node, value, depth + 1)
        elif isinstance(value, list):
            self._visit_array(node, value, depth + 1)
        elif node.has_pattern and isinstance(value, str):
            self._match(1, value)
        return self._steps

    def _visit_in_place(self, node: _Node, key: tuple[int, int], value: Any, depth: int) -> None:
        if key in self._active:  # a circle, which jsonschema-rs ends, too
            return
        self._active.add(key)
        members = len(value) if isinstance(value, dict | list) else 0
        for _ in range(_UNEVALUATED_VISITS + members if node.is_unevaluated else 1):
            for sub in node.in_place:
                self.visit(sub, value, depth)
        self._active.remove(key)

    def _visit_object(self, node: _Node, value: dict[str, Any], depth: int) -> None:
        for name, member in value.items():
            if name in node.properties:
                self.visit(node.properties[name], member, depth)
            if node.patterns:
                self._match(node.patterns, name)
            for sub in node.members:
                self.visit(sub, member, depth)
            for sub in node.names:
                self.visit(sub, name, depth)

    def _visit_array(self, node: _Node, value: list[Any], depth: int) -> None:
        for sub, item in zip(node.prefix, value, strict=False):
            self.visit(sub, item, depth)
        for sub in node.items:
            for item in value:
                self.visit(sub, item, depth)

    def _match(self, patterns: int, text: str) -> None:
        self._steps += patterns * self._pattern_steps * (1 + len(text) // _CHARS_PER_STEP)
        self._check(0)

    def _check(self, depth: int) -> None:
        if self._steps > _MAX_STEPS or depth > _MAX_DEPTH:
            raise TooManySteps
