"""What always holds for `dragoman.schema`, whatever a client or a model sends."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.schema import (
    NameMap,
    check_args,
    check_args_strictly,
    clean_schema,
    compile_schema,
    repair_args,
)
from dragoman.schema.strict import validate_strictly
from dragoman.schema.walk import Schema, children
from tests.corpus import check

NAMES = st.sampled_from(["a", "b", "type", "properties", "$ref", "-A"])
SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.5, 1.0, 2**70]),
    st.sampled_from(["", "a", "5", "ab"]),
)
JSON = st.recursive(
    SCALARS, lambda sub: st.lists(sub, max_size=3) | st.dictionaries(NAMES, sub, max_size=3), max_leaves=6
)
TYPES = st.sampled_from(["string", "number", "integer", "boolean", "array", "object", "null"])
REFS = st.sampled_from(
    ["#", "#/$defs/A", "#/$defs/B", "#/definitions/A", "#/properties/a", "#/nowhere", "#anchor", "http://x/y"]
)


def typed(sub: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Sound schemas: each says its types, so that nothing has to be guessed."""
    small = st.integers(0, 3)
    return st.fixed_dictionaries(
        {"type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True)},
        optional={
            "enum": st.lists(SCALARS, min_size=1, max_size=3),
            "properties": st.dictionaries(NAMES, sub, max_size=3),
            "required": st.lists(NAMES, max_size=2, unique=True),
            "additionalProperties": st.booleans() | sub,
            "items": st.booleans() | sub,
            "prefixItems": st.lists(sub, min_size=1, max_size=2),
            "minItems": small,
            "maxItems": small,
            "uniqueItems": st.booleans(),
            "minLength": small,
            "maxLength": small,
            "minimum": st.integers(-2, 2) | st.just(0.5),
            "exclusiveMinimum": st.integers(-2, 2) | st.just(0.5),
            "maximum": st.integers(-2, 2),
            "exclusiveMaximum": st.integers(-2, 2) | st.just(-0.5),
            "multipleOf": st.just(2),
            "maxProperties": small,
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$"]), sub, max_size=1),
            "description": st.just("words"),
            "default": JSON,
        },
    )


def sound_nodes(sub: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(sub, min_size=1, max_size=3)
    return st.one_of(
        typed(sub),
        typed(sub),
        st.fixed_dictionaries({"anyOf": some}),
        st.fixed_dictionaries({"allOf": some}),
        st.builds(lambda base, some: {**base, "anyOf": some}, typed(sub), some),
        st.builds(lambda base, some: {**base, "allOf": some}, typed(sub), some),
        st.fixed_dictionaries({"const": SCALARS}),
        st.fixed_dictionaries({"enum": st.lists(JSON, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"not": sub, "type": TYPES}),
        st.fixed_dictionaries(
            {"$ref": st.sampled_from(["#/$defs/A", "#/$defs/B"])}, optional={"description": st.just("d")}
        ),
    )


SOUND = st.recursive(st.booleans() | st.fixed_dictionaries({"type": TYPES}), sound_nodes, max_leaves=8)
SOUND_ROOT = st.fixed_dictionaries(
    {
        "type": st.just("object"),
        "properties": st.dictionaries(NAMES, SOUND, max_size=3),
        "$defs": st.fixed_dictionaries({"A": SOUND, "B": SOUND}),
    },
    optional={"required": st.lists(NAMES, max_size=2, unique=True), "additionalProperties": SOUND},
)

LEAVES: dict[str, st.SearchStrategy[Any]] = {
    "string": st.sampled_from(["", "a", "5", "ab"]),
    "number": st.sampled_from([-1, 0, 1, 2, 0.5, 1.0]),
    "integer": st.integers(-3, 3),
    "boolean": st.booleans(),
    "null": st.none(),
}


@st.composite
def likely(draw: st.DrawFn, schema: Any, defs: dict[str, Any], depth: int = 0) -> Any:
    """A value that the schema may well accept."""
    if not isinstance(schema, dict) or depth > 5:
        return draw(JSON)
    if "$ref" in schema:
        return draw(likely(defs[schema["$ref"][-1]], defs, depth + 1))
    if "enum" in schema or "const" in schema:
        return draw(st.sampled_from(schema.get("enum", [schema.get("const")])))
    inner = [*schema.get("anyOf", ()), *schema.get("allOf", ())]
    if inner and ("type" not in schema or draw(st.booleans())):
        return draw(likely(draw(st.sampled_from(inner)), defs, depth + 1))
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    kind = draw(st.sampled_from(kinds))
    if kind == "array":
        subs = [*schema.get("prefixItems", ()), *[schema.get("items", True)] * 2]
        return [draw(likely(sub, defs, depth + 1)) for sub in subs[: draw(st.integers(0, len(subs)))]]
    if kind == "object":
        some = {name: sub for name, sub in schema.get("properties", {}).items() if draw(st.integers(0, 3))}
        extra = schema.get("additionalProperties")
        more = {draw(NAMES): extra} if isinstance(extra, dict) else {}
        return {name: draw(likely(sub, defs, depth + 1)) for name, sub in {**more, **some}.items()}
    return draw(LEAVES[kind])


@st.composite
def schemas_with_values(draw: st.DrawFn) -> tuple[Any, list[Any]]:
    schema: Any = draw(SOUND_ROOT)
    return schema, [draw(likely(schema, schema["$defs"])) for _ in range(4)]


PLAIN = st.fixed_dictionaries(
    {"type": st.sampled_from([*LEAVES]) | st.lists(st.sampled_from([*LEAVES]), min_size=1, unique=True)},
    optional={
        "enum": st.lists(SCALARS, min_size=1, max_size=3),
        "minimum": st.integers(-2, 2),
        "exclusiveMaximum": st.integers(-2, 2) | st.just(0.5),
        "maxLength": st.integers(0, 2),
    },
)
#: Objects as most tools take them.
PLAIN_ROOT = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(NAMES, PLAIN, min_size=1, max_size=3)},
    optional={
        "required": st.lists(NAMES, max_size=2, unique=True),
        "additionalProperties": st.booleans(),
        "maxProperties": st.integers(0, 3),
    },
)
PLAIN_CASES = PLAIN_ROOT.flatmap(
    lambda schema: st.tuples(st.just(schema), st.lists(likely(schema, {}) | JSON, min_size=1, max_size=4))
)


KEYWORDS = st.sampled_from((
    "type", "properties", "required", "items", "prefixItems", "additionalProperties", "anyOf",
    "oneOf", "allOf", "not", "if", "then", "else", "enum", "const", "default", "examples", "$ref",
    "$defs", "definitions", "minimum", "exclusiveMinimum", "maxLength", "pattern",
    "patternProperties", "format", "nullable", "description", "title", "propertyNames",
    "dependencies", "contains", "minItems", "$schema", "x-made-up", "uniqueItems",
    "additionalItems", "unevaluatedProperties", "propertyOrdering", "dependentSchemas",
    "multipleOf", "deprecated", "example",
))  # fmt: skip


def hostile_nodes(sub: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    value = st.one_of(
        sub,
        REFS,
        TYPES,
        st.lists(TYPES | sub, max_size=3),
        st.dictionaries(NAMES | st.just(""), sub, max_size=3),
    )
    return (
        st.dictionaries(KEYWORDS, value, max_size=5)
        | st.fixed_dictionaries({"$ref": REFS})
        | sound_nodes(sub)
    )


HOSTILE = st.recursive(JSON | st.booleans(), hostile_nodes, max_leaves=12)
HOSTILE_ROOT = HOSTILE | st.builds(
    lambda root, a, b: {**root, "$defs": {"A": a, "B": b}},
    st.dictionaries(KEYWORDS, HOSTILE, max_size=4),
    HOSTILE,
    HOSTILE,
)


CIRCLES = st.recursive(
    st.fixed_dictionaries(
        {"$ref": st.sampled_from(["#", "#/$defs/A", "#/$defs/B", "#/properties/a"])},
        optional={"description": st.just("d"), "nullable": st.just(True), "minProperties": st.just(1)},
    ),
    lambda sub: st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(NAMES, sub, min_size=1, max_size=3)},
            optional={"required": st.lists(NAMES, max_size=3)},
        ),
        st.fixed_dictionaries({"type": st.just("array"), "items": sub}),
        st.fixed_dictionaries({"type": st.just("object"), "additionalProperties": sub}),
        st.fixed_dictionaries({"anyOf": st.lists(sub | st.just({"type": "string"}), min_size=1, max_size=3)}),
        st.fixed_dictionaries({"allOf": st.lists(sub, min_size=1, max_size=2)}),
    ),
    max_leaves=6,
)
CIRCULAR_ROOT = st.builds(
    lambda a, b, x, required: {
        "properties": {"a": x, "b": a},
        "required": required,
        "$defs": {"A": a, "B": b},
    },
    CIRCLES,
    CIRCLES,
    CIRCLES,
    st.lists(NAMES, max_size=2),
)


def nodes(schema: Any) -> list[Schema]:
    return [schema, *(deep for _, sub in children(schema) if isinstance(sub, dict) for deep in nodes(sub))]


@given(HOSTILE_ROOT | CIRCULAR_ROOT)
@settings(max_examples=200, deadline=None)
def test_schema_clean_takes_anything_and_gives_what_google_takes(schema: Any) -> None:
    before = json.dumps(schema)
    out, notes = clean_schema(schema, where="s")
    assert json.dumps(schema) == before, "the argument was changed"
    assert check.jsonschema_problems(out) == []
    assert out["type"] == "object"
    assert isinstance(out["properties"], dict)
    assert all(note.where.startswith("s") for note in notes)
    jsonschema.Draft202012Validator.check_schema(check.to_jsonschema(out, "json"))
    for node in nodes(out):
        for name in node.get("required", ()):
            assert not circles(node["properties"][name]), "a recursive property is required"


def circles(node: Schema) -> bool:
    subs = [sub for path, sub in children(node) if path[0] != "properties" and isinstance(sub, dict)]
    return "$ref" in node or any(map(circles, subs))


@given(HOSTILE_ROOT | CIRCULAR_ROOT, st.booleans())
@settings(max_examples=200, deadline=None)
def test_schema_clean_is_idempotent_and_deterministic(schema: Any, vertex: bool) -> None:
    once, _ = clean_schema(schema, where="s", vertex=vertex)
    assert json.dumps(clean_schema(schema, where="s", vertex=vertex)[0]) == json.dumps(once)
    twice, _ = clean_schema(once, where="s", vertex=vertex)
    assert twice == once
    assert list(twice["properties"]) == list(once["properties"])


@given(HOSTILE_ROOT | CIRCULAR_ROOT, st.booleans())
@settings(max_examples=100, deadline=None)
def test_schema_compile_gives_a_lawful_message(schema: Any, vertex: bool) -> None:
    out, _ = compile_schema(schema, where="s", vertex=vertex)
    if out is None:
        return
    assert check.openapi_problems(out) == []
    for node in nodes(out):
        assert node.get("type") != "OBJECT" or node["properties"]
        assert "enum" not in node or node["type"] == "STRING"
        assert node.get("format", "enum") in ("enum", "date-time", "float", "double", "int32", "int64")
        if vertex:
            assert list(node) == ["anyOf"] or ("type" in node and "anyOf" not in node)


@given(HOSTILE_ROOT)
@settings(max_examples=100, deadline=None)
def test_schema_vertex_leaves_nothing_beside_any_of(schema: Any) -> None:
    out, _ = clean_schema(schema, where="s", vertex=True)
    assert check.jsonschema_problems(out) == []
    assert all(list(node) == ["anyOf"] for node in nodes(out) if "anyOf" in node)


@given(schemas_with_values())
@settings(max_examples=150, deadline=None)
def test_schema_what_the_original_accepts_the_clean_one_accepts(case: tuple[Any, list[Any]]) -> None:
    schema, values = case
    original = jsonschema.Draft202012Validator(schema)
    clean = jsonschema.Draft202012Validator(check.to_jsonschema(clean_schema(schema, where="s")[0], "json"))
    message = jsonschema.Draft202012Validator(
        check.to_jsonschema(compile_schema(schema, where="s")[0], "openapi")
    )
    for value in [{}, *values]:
        if accepts(original, value):
            assert clean.is_valid(value)
            assert message.is_valid(value)
            assert check_args(json.dumps(value).encode(), json.dumps(schema).encode()) == ()


def accepts(validator: Any, value: Any) -> bool | None:
    """Return the judge's verdict, or None for a definition that is nothing but itself.

    Its behaviour is undefined (JSON Schema 2020-12 core, section 9.4.1).
    """
    try:
        return bool(validator.is_valid(value))
    except RecursionError:
        return None
    except BaseException as error:  # the same, found out inside the judge's Rust part
        if type(error).__name__ != "PanicException":
            raise
        return None


@given(schemas_with_values())
@settings(max_examples=100, deadline=None)
def test_schema_mend_leaves_right_arguments_alone(case: tuple[Any, list[Any]]) -> None:
    schema, (value, *_) = case
    args, text = json.dumps(value).encode(), json.dumps(schema).encode()
    mended, notes = repair_args(args, text, where="w")
    if accepts(jsonschema.Draft202012Validator(schema), value):
        assert json.loads(mended) == value
        assert b".0" in args or mended is args
    if mended is args:
        assert notes == ()
    again, _ = repair_args(mended, text, where="w")
    assert json.loads(again) == json.loads(mended)


@given(st.one_of(schemas_with_values(), PLAIN_CASES))
@settings(max_examples=200, deadline=None)
def test_schema_two_judges_agree_in_strict_mode(case: tuple[Any, list[Any]]) -> None:
    schema, values = case
    for value in values:
        verdict = validate_strictly(value, json.dumps(schema).encode())
        expected = accepts(jsonschema.Draft202012Validator(schema), value)
        if not verdict.not_checked and expected is not None:
            assert verdict.valid == expected


@given(HOSTILE_ROOT, JSON)
@settings(max_examples=150, deadline=None)
def test_schema_arguments_never_raise(schema: Any, value: Any) -> None:
    args, text = json.dumps(value).encode(), json.dumps(schema).encode()
    check_args(args, text)
    check_args_strictly(args, text, where="w")
    mended, _ = repair_args(args, text, where="w")
    assert isinstance(value, dict) or mended is args


@given(
    st.lists(st.text(max_size=100) | st.from_regex(r"[A-Za-z_][\w./ -]{0,90}", fullmatch=True), max_size=8)
)
def test_schema_names_are_legal_unique_and_lead_back(names: list[str]) -> None:
    found = NameMap.of(names)
    wires = {name: found.to_wire(name) for name in names}
    assert len(set(wires.values())) == len(set(names))
    for name, wire in wires.items():
        assert check.NAME_RE.match(wire)
        assert len(wire) <= 64
        assert found.from_wire(wire) == name
        assert NameMap.of(reversed(names)).to_wire(name) == wire
        assert NameMap.of(()).to_wire(name) == wire
