"""JSON Schemas that can be satisfied, for property tests: `documents()` gives whole ones with references."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]

NAMES = st.sampled_from(["path", "url", "query", "count", "city", "items", "a", "b-c", "$d", "content"])
PATTERNS = [
    "^[a-z]+$",
    "^[A-Z]{2}-\\d{3,5}$",
    "^(?:red|green|blue)$",
    "^v\\d+\\.\\d+(\\.\\d+)?$",
    "^https://[^/]+/.*$",
    "^[^@]+@[^@]+$",
    "\\d{4}-\\d{2}-\\d{2}",
    "^(?=.*[a-z])[a-z0-9_-]{3,16}$",
    "^#([0-9a-f]{3}|[0-9a-f]{6})$",
    "^\\S+$",
    "^[\\w.-]*\\.(txt|md)$",
    "^[]a]{2}$",
]


@st.composite
def sized(draw: st.DrawFn, least: str, most: str, limit: int) -> Json:
    low = draw(st.integers(0, limit))
    bounds = {least: low, most: low + draw(st.integers(0, limit))}
    return {key: bounds[key] for key in draw(st.sets(st.sampled_from([least, most])))}


@st.composite
def numbers(draw: st.DrawFn) -> Json:
    low = draw(st.integers(-50, 50))
    step = draw(st.sampled_from([None, 2, 5]))
    bounds: Json = {"minimum": low, "maximum": low + draw(st.integers(step or 0, 20))}
    if draw(st.booleans()):
        bounds = {"exclusiveMinimum": low, "exclusiveMaximum": low + draw(st.integers((step or 1) + 1, 20))}
    kept = {key: bounds[key] for key in sorted(draw(st.sets(st.sampled_from(sorted(bounds)))))}
    steps = {"multipleOf": step} if step else {}
    return {"type": draw(st.sampled_from(["integer", "number"])), **kept, **steps}


TEXTS = st.one_of(
    sized("minLength", "maxLength", 30).map(lambda bounds: {"type": "string", **bounds}),
    st.sampled_from(PATTERNS).map(lambda pattern: {"type": "string", "pattern": pattern}),
    st.sampled_from(["date-time", "email", "uri", "uuid", "date"]).map(
        lambda form: {"type": "string", "format": form}
    ),
)
CLOSED = st.one_of(
    st.lists(st.sampled_from(["red", "blue", 3, None, True, 2.5]), min_size=1, unique_by=repr).map(
        lambda members: {"enum": members}
    ),
    st.sampled_from(["x", 4, False, None, [1], {"k": "v"}]).map(lambda value: {"const": value}),
    st.just({"type": "string", "enum": ["celsius", "kelvin"]}),
)
LOOSE = st.sampled_from(
    [
        {},
        {"type": "boolean"},
        {"type": "null"},
        {"type": ["null", "integer"]},
        {"type": "string", "nullable": True},
    ]
)
SCALARS = st.one_of(TEXTS, numbers(), CLOSED, LOOSE)


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[Json]) -> Json:
    named = draw(st.dictionaries(NAMES, inner, max_size=4))
    required = sorted(draw(st.sets(st.sampled_from(sorted(named))))) if named else []
    node: Json = {"type": "object", "properties": named, "required": required}
    extra = draw(st.sampled_from([None, False, "map"]))
    if extra is False:
        node["additionalProperties"] = False
    elif extra == "map":
        node |= {"additionalProperties": draw(inner), "minProperties": draw(st.integers(0, 6))}
    return node


@st.composite
def arrays(draw: st.DrawFn, inner: st.SearchStrategy[Json]) -> Json:
    if draw(st.booleans()):
        return {"type": "array", "items": draw(inner), **draw(sized("minItems", "maxItems", 3))}
    first = draw(st.lists(inner, min_size=1, max_size=3))
    rest: Json = draw(st.sampled_from([{}, {"items": False}, {"items": {"type": "integer"}}]))
    return {"type": "array", "prefixItems": first, "minItems": len(first), **rest}


def unions(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    return st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda nodes: {"anyOf": nodes}),
        inner.map(lambda node: {"anyOf": [{"type": "null"}, node], "description": "x"}),
        st.permutations([{"type": "string"}, {"type": "integer"}, {"type": "array", "items": {}}]).map(
            lambda nodes: {"oneOf": nodes}
        ),
        st.tuples(inner, inner).map(
            lambda pair: {
                "allOf": [
                    {"type": "object", "properties": {"left": pair[0]}, "required": ["left"]},
                    {"properties": {"right": pair[1]}, "required": ["right"]},
                ]
            }
        ),
    )


UNIQUE = st.sampled_from(
    [
        {"type": "array", "items": {"type": "string"}, "minItems": 4, "uniqueItems": True},
        {"type": "array", "items": {"type": "integer", "minimum": 9}, "minItems": 3, "uniqueItems": True},
        {"type": "array", "items": {"enum": ["x", "y", "z"]}, "minItems": 3, "uniqueItems": True},
        {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "uniqueItems": True},
    ]
)
REFERENCES = st.sampled_from(["#/$defs/tree", "#/$defs/list", "#/$defs/expression", "#/$defs/leaf~1x"]).map(
    lambda reference: {"$ref": reference}
)
NODES = st.recursive(
    st.one_of(SCALARS, UNIQUE, REFERENCES),
    lambda inner: st.one_of(objects(inner), arrays(inner), unions(inner)),
    max_leaves=8,
)
#: Recursive in every way that can end: an optional child, a list, a nullable link, a union with a scalar.
DEFS: Json = {
    "tree": {
        "type": "object",
        "properties": {
            "value": {"type": "string"},
            "kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
            "other": {"$ref": "#/$defs/tree"},
        },
        "required": ["value", "kids"],
    },
    "list": {
        "type": "object",
        "properties": {"next": {"anyOf": [{"$ref": "#/$defs/list"}, {"type": "null"}]}},
        "required": ["next"],
    },
    "expression": {
        "anyOf": [
            {"type": "array", "items": {"$ref": "#/$defs/expression"}, "minItems": 2},
            {"type": "number"},
        ]
    },
    "leaf/x": {"type": "string", "minLength": 2},
}


def documents() -> st.SearchStrategy[Json]:
    return objects(NODES).map(lambda node: {**node, "$defs": DEFS})
