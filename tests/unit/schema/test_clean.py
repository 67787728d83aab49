"""What `clean_schema` makes of real and of hostile schemas."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.schema import clean_schema
from tests.corpus import check

EMPTY = {"type": "object", "properties": {}}
STRING, INTEGER, NUMBER = ({"type": kind} for kind in ("string", "integer", "number"))


def clean(schema: Any) -> tuple[dict[str, Any], list[str]]:
    out, notes = clean_schema(schema, where="s")
    assert check.jsonschema_problems(out) == []
    assert clean_schema(out, where="s")[0] == out
    return out, [str(note) for note in notes]


def prop(schema: Any, **root: Any) -> tuple[Any, list[str]]:
    """The clean form of one property `x`, and the notes."""
    out, notes = clean({"type": "object", "properties": {"x": schema}, **root})
    return out["properties"].get("x"), [note.replace("s.properties.x", "x") for note in notes]


@pytest.mark.parametrize("nonsense", [None, [], "x", 5, False])
def test_nonsense_is_an_object_without_properties(nonsense: Any) -> None:
    assert clean(nonsense) == (EMPTY, ["repaired s: not a schema: taken as an object without properties"])


@pytest.mark.parametrize(
    "open_", [True, {}, {"$schema": "x"}, {"type": "object"}, {"type": ["object", "null"]}]
)
def test_an_open_root_is_an_object_without_properties(open_: Any) -> None:
    assert clean(open_) == (EMPTY, [])


def test_b1_bookkeeping_goes_silently_and_unknown_keywords_with_a_note() -> None:
    """pain B1"""
    schema = {
        "$schema": "s",
        "$id": "i",
        "$comment": "c",
        **EMPTY,
        "~optional": 1,
        "x-y": 2,
        "encrypted": True,
    }
    out, notes = clean(schema)
    assert out == EMPTY
    assert [note.split(":")[0] for note in notes] == [
        "dropped s.~optional",
        "dropped s.x-y",
        "dropped s.encrypted",
    ]


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ({"type": "integer", "multipleOf": 5}, "Must be a multiple of 5."),
        ({"type": "number", "exclusiveMaximum": 1}, "Must be less than 1."),
        ({"type": "string", "contentMediaType": "text/html"}, "Holds text/html."),
        (
            {"type": "string", "contentSchema": {"type": "object"}},
            'The decoded content must match {"type":"object"}.',
        ),
        ({"not": {"type": "null"}}, 'Must not match {"type":"null"}.'),
        (
            {"if": STRING, "then": {"minLength": 1}},
            'If it matches {"type":"string"}, then it must match {"minLength":1}.',
        ),
        ({"if": STRING, "else": False}, 'If it matches {"type":"string"}, otherwise it must match false.'),
        ({"type": "array", "contains": STRING}, 'Must contain at least 1 matching {"type":"string"}.'),
        (
            {"type": "array", "contains": STRING, "minContains": 2, "maxContains": 3},
            'Must contain 2 to 3 matching {"type":"string"}.',
        ),
        ({"type": "array", "unevaluatedItems": False}, "No other items are allowed."),
        (
            {"type": "object", "propertyNames": {"pattern": "^x"}},
            'Property names must match {"pattern":"^x"}.',
        ),
        ({"type": "object", "propertyNames": False}, "Must be empty."),
        (
            {"type": "object", "unevaluatedProperties": STRING},
            'Other properties must match {"type":"string"}.',
        ),
        ({"type": "object", "dependentRequired": {"a": ["b", "c"]}}, "With `a`, `b`, `c` must be given too."),
        (
            {"type": "object", "dependencies": {"a": {"minProperties": 2}}},
            'With `a`, it must match {"minProperties":2}.',
        ),
        ({"type": "object", "dependentSchemas": {"a": True}}, "With `a`, it must match true."),
        ({"type": "string", "examples": ["a"]}, 'Examples: ["a"]'),
        ({"type": "string", "example": {"type": "x"}}, 'Examples: [{"type":"x"}]'),
        ({"type": "string", "deprecated": True}, "Deprecated."),
        ({"type": "string", "writeOnly": True}, "Write-only."),
        ({"type": "boolean", "const": True}, "Must be true."),
        ({"enum": [{"a": 1}, {"b": 2}]}, 'Allowed values: {"a":1}, {"b":2}.'),
        ({"type": "string", "enum": [1, 2]}, "Allowed values: 1, 2."),
        ({"enum": ["a", "b"], "enumDescriptions": ["A", 2]}, '"a": A; "b": 2'),
        (
            {"type": "string", "allOf": [{"pattern": "a"}, {"pattern": "b"}]},
            'Must also match {"pattern":"b"}.',
        ),
        (
            {"anyOf": [STRING, INTEGER], "oneOf": [STRING, NUMBER]},
            'Must also match {"oneOf":[{"type":"string"},{"type":"number"}]}.',
        ),
    ],
)
def test_b3_what_cannot_be_said_is_described_and_noted(schema: Any, sentence: str) -> None:
    """pain B3"""
    out, notes = prop({**schema, "description": "D."})
    assert out["description"] == f"D.\n{sentence}"
    assert [note.split()[0] for note in notes] == ["moved"]
    assert prop(schema)[0]["description"] == sentence


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "deprecated": False, "contentSchema": True},
        {"type": "string", "if": {"minLength": 1}},
        {"type": "string", "contentSchema": False},
    ],
)
def test_b3_keywords_that_say_nothing_are_not_described(schema: Any) -> None:
    """pain B3"""
    assert prop(schema) == (STRING, [])


def test_b3_long_rules_are_shortened() -> None:
    """pain B3"""
    out, _ = prop({"not": {"enum": ["x" * 500]}})
    assert 400 < len(out["description"]) < 440
    assert out["description"].endswith("….")


def test_b3_payloads_are_never_read_as_schemas() -> None:
    """pain B3"""
    payload = {"type": ["string", "null"], "$ref": "#/nowhere", "const": 1, "properties": {"": {}}}
    assert prop({"type": "object", "default": payload})[0]["default"] == payload
    assert prop({"type": "string", "default": ""})[0]["default"] == ""


def test_b4_properties_named_like_keywords_are_properties() -> None:
    """pain B4"""
    names = "pattern type items $ref -A properties format description title required enum nullable const $defs".split()
    properties = {name: {"type": "string", "description": name} for name in names}
    schema = {"type": "object", "properties": properties, "required": ["pattern", "-A", "$ref"]}
    assert clean(schema) == (schema, [])


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": "string", "nullable": True}, {"type": "string", "nullable": True}),
        ({"anyOf": [STRING, {"type": "null"}]}, {"type": "string", "nullable": True}),
        ({"oneOf": [{"type": "null"}, STRING]}, {"type": "string", "nullable": True}),
        ({"anyOf": [STRING], "nullable": True}, {"type": "string", "nullable": True}),
        ({"enum": ["a", None]}, {"type": "string", "enum": ["a"], "nullable": True}),
        ({"enum": ["a"], "nullable": True}, {"type": "string", "enum": ["a"], "nullable": True}),
        ({"type": ["string", "null"], "enum": ["a"]}, {"type": "string", "enum": ["a"]}),
        ({"nullable": True}, {}),
        ({"anyOf": [{}, {"type": "null"}]}, {}),
        ({"type": ["null"]}, {"type": "null"}),
        ({"type": "null", "description": "none"}, {"type": "null", "description": "none"}),
        (
            {"anyOf": [STRING, {"type": "null", "description": "unset"}]},
            {"type": "string", "nullable": True, "description": "unset"},
        ),
        ({"type": ["string", "number"]}, {"anyOf": [STRING, NUMBER]}),
        ({"type": ["integer", "number"]}, NUMBER),
        ({"type": ["string", "integer", "null"]}, {"anyOf": [STRING, INTEGER, {"type": "null"}]}),
        ({"anyOf": [{"type": ["string", "null"]}, INTEGER]}, {"anyOf": [STRING, INTEGER, {"type": "null"}]}),
        ({"anyOf": [STRING, STRING]}, STRING),
        ({"anyOf": [{"const": "a"}, {"const": "b"}]}, {"type": "string", "enum": ["a", "b"]}),
        (
            {"anyOf": [{"const": "a"}, {"const": 1}]},
            {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "integer", "enum": [1]}]},
        ),
        (
            {"anyOf": [{"anyOf": [STRING, INTEGER], "title": "T"}, NUMBER]},
            {"anyOf": [{"type": "string", "title": "T"}, {"type": "integer", "title": "T"}, NUMBER]},
        ),
        (
            {"type": ["string", "array"], "maxLength": 2, "items": STRING},
            {"anyOf": [{"type": "string", "maxLength": 2}, {"type": "array", "items": STRING}]},
        ),
        (
            {"type": "string", "anyOf": [{"maxLength": 2}, {"pattern": "x"}]},
            {"anyOf": [{"type": "string", "maxLength": 2}, {"type": "string", "pattern": "x"}]},
        ),
        ({"type": "string", "anyOf": [{"minLength": 2}, False]}, {"type": "string", "minLength": 2}),
        ({"enum": [1, 2.5]}, {"type": "number", "enum": [1, 2.5]}),
        ({"enum": [1, 1, True, False]}, {"anyOf": [{"type": "integer", "enum": [1]}, {"type": "boolean"}]}),
        ({"type": "any"}, {}),
        ({"type": "STRING"}, STRING),
    ],
)
def test_b5_types_and_alternatives(schema: Any, wanted: Any) -> None:
    """pain B5"""
    assert prop(schema)[0] == wanted


def test_b5_annotations_stand_over_the_alternatives_once() -> None:
    """pain B5"""
    schema = {"type": ["string", "integer"], "title": "T", "description": "D", "default": 1}
    over = {"title": "T", "description": "D", "default": 1}
    assert prop(schema)[0] == {**over, "anyOf": [STRING, INTEGER]}
    out, _ = clean_schema({"properties": {"x": schema}}, where="s", vertex=True)
    assert out["properties"]["x"] == {"anyOf": [{**STRING, **over}, INTEGER]}


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        (
            {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 9},
            {"type": "integer", "minimum": 1, "maximum": 8},
        ),
        ({"type": "integer", "exclusiveMinimum": 0.5, "minimum": 5}, {"type": "integer", "minimum": 5}),
        ({"type": "integer", "maximum": 9, "exclusiveMaximum": True}, {"type": "integer", "maximum": 8}),
        ({"type": "integer", "maximum": 9, "exclusiveMaximum": False}, {"type": "integer", "maximum": 9}),
        ({"type": "integer", "exclusiveMaximum": True}, INTEGER),
        ({"type": "integer", "minimum": 2**70}, {"type": "integer", "minimum": 2**70}),
        ({"type": "array", "items": [STRING, INTEGER]}, {"type": "array", "prefixItems": [STRING, INTEGER]}),
        (
            {"type": "array", "items": [STRING], "additionalItems": False},
            {"type": "array", "prefixItems": [STRING], "maxItems": 1},
        ),
        (
            {"type": "array", "items": [STRING], "additionalItems": INTEGER},
            {"type": "array", "prefixItems": [STRING], "items": INTEGER},
        ),
        ({"type": "array", "items": []}, {"type": "array", "items": {}}),
        ({"type": "array", "items": False}, {"type": "array", "maxItems": 0, "items": {}}),
        ({"type": "array", "items": True, "minItems": 1.0}, {"type": "array", "items": {}, "minItems": 1}),
        ({"properties": {"a": STRING}}, {"type": "object", "properties": {"a": STRING}}),
        ({"items": STRING}, {"type": "array", "items": STRING}),
        ({"pattern": "x"}, {"type": "string", "pattern": "x"}),
        ({"minimum": 1}, {"type": "number", "minimum": 1}),
        (
            {"type": "object", "propertyOrdering": ["a", "b"], "properties": {"a": {}}},
            {"type": "object", "properties": {"a": {}}, "propertyOrdering": ["a"]},
        ),
        (
            {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
            {"type": "object", "additionalProperties": {"type": "string", "nullable": True}},
        ),
        (
            {"type": "object", "additionalProperties": False, "patternProperties": {}},
            {"type": "object", "additionalProperties": False},
        ),
        ({"type": "string", "description": "", "title": ""}, STRING),
    ],
)
def test_older_drafts_and_loose_spellings(schema: Any, wanted: Any) -> None:
    assert prop(schema) == (wanted, [])


def test_names_that_match_a_pattern_are_not_shut_out() -> None:
    one = {"type": "object", "patternProperties": {"^x": STRING}, "additionalProperties": False}
    assert prop(one)[0]["additionalProperties"] == STRING
    two = {**one, "patternProperties": {"^x": STRING, "^y": INTEGER}}
    assert prop(two)[0]["additionalProperties"] is True


@pytest.mark.parametrize(
    ("schema", "wanted", "note"),
    [
        (
            {"type": "string", "minimum": 1},
            STRING,
            "dropped x.minimum: it says nothing about a value of type string",
        ),
        (
            {"type": "string", "properties": {"a": {}}},
            STRING,
            "dropped x.properties: it says nothing about a value of type string",
        ),
        ({"type": "string", "enum": []}, STRING, "dropped x.enum: the value is not what the keyword takes"),
        (
            {"type": "integer", "minimum": "1"},
            INTEGER,
            "dropped x.minimum: the value is not what the keyword takes",
        ),
        (
            {"type": "integer", "multipleOf": 0},
            INTEGER,
            "dropped x.multipleOf: the value is not what the keyword takes",
        ),
        (
            {"type": "string", "minLength": 1.5},
            STRING,
            "dropped x.minLength: the value is not what the keyword takes",
        ),
        (
            {"type": "string", "minLength": -1},
            STRING,
            "dropped x.minLength: the value is not what the keyword takes",
        ),
        (
            {"type": "string", "maxLength": True},
            STRING,
            "dropped x.maxLength: the value is not what the keyword takes",
        ),
        (
            {"type": "number", "maximum": float("inf")},
            NUMBER,
            "dropped x.maximum: the value is not what the keyword takes",
        ),
        (
            {"type": "string", "pattern": 5},
            STRING,
            "dropped x.pattern: the value is not what the keyword takes",
        ),
        (
            {"type": "object", "required": "a"},
            {"type": "object"},
            "dropped x.required: the value is not what the keyword takes",
        ),
        (
            {"type": "object", "properties": []},
            {"type": "object"},
            "dropped x.properties: the value is not what the keyword takes",
        ),
        ({"type": "string", "anyOf": {}}, STRING, "dropped x.anyOf: the value is not what the keyword takes"),
        (
            {"type": "array", "items": 5},
            {"type": "array", "items": {}},
            "dropped x.items: the value is not what the keyword takes",
        ),
        (
            {"type": "string", "nullable": "yes"},
            STRING,
            "dropped x.nullable: the value is not what the keyword takes",
        ),
        ({"type": ["str", 5]}, STRING, "repaired x.type: not a list of different JSON types"),
        ({"type": "file"}, {}, "repaired x.type: not a list of different JSON types"),
        ({"allOf": [STRING, INTEGER]}, STRING, "dropped x: no value can satisfy all of its parts"),
        (
            {"type": "array", "items": {"anyOf": [False]}},
            {"type": "array", "items": {}},
            "dropped x.items: no branch of anyOf can hold",
        ),
    ],
)
def test_mistakes_are_dropped_with_a_note(schema: Any, wanted: Any, note: str) -> None:
    out, notes = prop(schema)
    assert {key: value for key, value in out.items() if key != "description"} == wanted
    assert note in notes


def test_b9_required_names_only_what_is_defined() -> None:
    """pain B9"""
    out, notes = prop({"type": "object", "properties": {"a": STRING}, "required": ["a", "b", 5, "a"]})
    assert out["required"] == ["a"]
    assert notes == ["dropped x.required: 'b' is not among the properties"]
    assert prop({"type": "object", "required": ["b"]})[0] == {"type": "object"}


def test_b9_required_on_the_property_itself_counts() -> None:
    """pain B9"""
    out, notes = clean({"properties": {"a": {"type": "string", "required": True}, "b": {"required": False}}})
    assert out == {"type": "object", "properties": {"a": STRING, "b": {}}, "required": ["a"]}
    assert notes == []


def test_properties_without_a_name_or_a_value_go() -> None:
    out, notes = clean({"properties": {"": STRING, "no": False, "bad": 5, "any": True}, "required": ["no"]})
    assert out == {"type": "object", "properties": {"any": {}}}
    assert len(notes) == 4


def test_the_order_of_properties_is_kept() -> None:
    names = ["z", "a", "m", "b"]
    assert list(clean({"properties": dict.fromkeys(names, STRING)})[0]["properties"]) == names


@pytest.mark.parametrize(
    ("members", "wanted"),
    [
        ([{"type": "string"}, {"maxLength": 5}, {"maxLength": 3}], {"type": "string", "maxLength": 3}),
        ([{"type": ["string", "number"]}, {"type": ["integer", "null"]}], INTEGER),
        (
            [{"type": ["integer", "null"]}, {"type": ["number", "null"]}],
            {"type": "integer", "nullable": True},
        ),
        ([{"enum": ["a", "b"]}, {"enum": ["b", "c"]}], {"type": "string", "enum": ["b"]}),
        (
            [{"items": STRING}, {"items": {"maxLength": 2}}],
            {"type": "array", "items": {"type": "string", "maxLength": 2}},
        ),
        ([{"items": STRING}, {"items": True}], {"type": "array", "items": STRING}),
        ([{"items": True}, {"items": STRING}], {"type": "array", "items": STRING}),
        ([{"items": STRING}, {"items": False}], {"type": "array", "items": {}, "maxItems": 0}),
        (
            [{"type": "array", "uniqueItems": True}, {"uniqueItems": False}],
            {"type": "array", "uniqueItems": True, "items": {}},
        ),
        ([{"type": "string", "title": "A"}, {"title": "B"}], {"type": "string", "title": "A"}),
        (
            [{"type": "string", "description": "A"}, {"description": "B"}],
            {"type": "string", "description": "A\nB"},
        ),
        (
            [{"type": "string", "description": "A\nB"}, {"description": "B"}],
            {"type": "string", "description": "A\nB"},
        ),
        (
            [
                {"properties": {"a": STRING}, "required": ["a"]},
                {"properties": {"a": {"maxLength": 1}, "b": INTEGER}, "required": ["b"]},
            ],
            {
                "type": "object",
                "properties": {"a": {"type": "string", "maxLength": 1}, "b": INTEGER},
                "required": ["a", "b"],
            },
        ),
    ],
)
def test_all_of_is_merged(members: list[Any], wanted: Any) -> None:
    assert prop({"allOf": members}) == (wanted, [])


def test_b10_references_are_inlined_with_their_siblings() -> None:
    """pain B10"""
    defs = {"A": {"type": "string", "description": "def"}, "B/~%": {"$ref": "#/$defs/A"}}
    assert prop({"$ref": "#/$defs/A"}, **{"$defs": defs}) == (defs["A"], [])
    assert prop({"$ref": "#/definitions/A"}, definitions=defs) == (defs["A"], [])
    both = {"type": "string", "description": "here\ndef", "default": "d"}
    assert prop({"$ref": "#/%24defs/B~1~0%25", "description": "here", "default": "d"}, **{"$defs": defs}) == (
        both,
        [],
    )
    assert prop({"$ref": "#/allOf/0"}, allOf=[STRING | {"type": "object"}])[0] == {"type": "object"}


@pytest.mark.parametrize(
    "ref", ["#/nowhere", "#/allOf/x", "#/type", "#/type/x", "#anchor", "https://example.com/x.json"]
)
def test_b10_references_that_lead_nowhere_leave_the_place_open(ref: str) -> None:
    """pain B10"""
    out, notes = prop({"$ref": ref, "description": "D"}, allOf=[{}])
    assert out == {"description": "D"}
    assert notes == [
        f"dropped x: the reference {ref!r} points nowhere in this schema: anything is allowed here"
    ]


def test_b10_a_root_reference_keeps_its_parameters() -> None:
    """pain B10"""
    schema = {"$ref": "#/$defs/Args", "$defs": {"Args": {"properties": {"a": STRING}, "required": ["a"]}}}
    assert clean(schema) == ({"type": "object", "properties": {"a": STRING}, "required": ["a"]}, [])


def test_b10_circles_stay_references_to_definitions() -> None:
    """pain B10"""
    node = {"type": "object", "properties": {"next": {"$ref": "#/definitions/my node"}}}
    out, notes = clean(
        {"properties": {"x": {"$ref": "#/definitions/my node"}}, "definitions": {"my node": node}}
    )
    kept = {"type": "object", "properties": {"next": {"$ref": "#/$defs/my_node"}}}
    assert out == {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/my_node"}},
        "$defs": {"my_node": kept},
    }
    assert notes == []


def test_b10_the_root_may_contain_itself() -> None:
    """pain B10"""
    out, _ = clean({"type": "object", "properties": {"child": {"$ref": "#"}, "v": INTEGER}})
    again = {"type": "object", "properties": {"child": {"$ref": "#/$defs/root"}, "v": INTEGER}}
    assert out == {**again, "$defs": {"root": again}}


def test_b10_a_circle_without_properties_stays_small() -> None:
    """pain B10"""
    out, _ = clean({"type": "object", "additionalProperties": {"$ref": "#"}})
    ref = {"additionalProperties": {"$ref": "#/$defs/root"}}
    assert out == {**EMPTY, **ref, "$defs": {"root": {"type": "object", **ref}}}
    rows = {"type": "array", "items": {"$ref": "#/$defs/R"}}
    out, _ = clean({"properties": {"x": {"$ref": "#/$defs/R"}}, "required": ["x"], "$defs": {"R": rows}})
    assert "required" not in out


def test_b10_a_recursive_property_is_not_required_but_asked_for() -> None:
    """pain B10"""
    node = {
        "type": "object",
        "properties": {"v": INTEGER, "kids": {"type": "array", "items": {"$ref": "#/$defs/N"}}},
        "required": ["v", "kids"],
    }
    out, notes = clean({"properties": {"n": {"$ref": "#/$defs/N"}}, "required": ["n"], "$defs": {"N": node}})
    assert out["required"] == ["n"]
    assert out["properties"]["n"] == out["$defs"]["N"]
    assert out["$defs"]["N"]["required"] == ["v"]
    assert out["$defs"]["N"]["description"] == "Required: `kids`."
    assert "moved s.$defs.N.required: 'kids' is recursive: only the description asks for it" in notes
    only = {"type": "object", "properties": {"next": {"$ref": "#/$defs/L"}}, "required": ["next"]}
    out, _ = clean({"properties": {"l": {"$ref": "#/$defs/L"}}, "$defs": {"L": only}})
    assert "required" not in out["$defs"]["L"]


def test_b10_mutual_recursion_through_required_properties_ends() -> None:
    """pain B10"""
    a = {"type": "object", "properties": {"b": {"$ref": "#/$defs/B"}}, "required": ["b"]}
    b = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "required": ["a"]}
    out, _ = clean({"properties": {"x": {"$ref": "#/$defs/A"}}, "$defs": {"A": a, "B": b}})
    assert list(out["$defs"]) == ["A"]
    assert out["$defs"]["A"]["required"] == ["b"]
    assert out["$defs"]["A"]["properties"]["b"]["properties"]["a"] == {"$ref": "#/$defs/A"}


@pytest.mark.parametrize(
    ("over", "wanted"),
    [
        ({"description": "D"}, {"description": "D", "anyOf": [{"$ref": "#/$defs/N"}]}),
        ({"nullable": True}, {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]}),
        (
            {"nullable": True, "title": "T"},
            {"title": "T", "anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]},
        ),
        (
            {"minProperties": 1},
            {"description": 'Must also match {"minProperties":1}.', "anyOf": [{"$ref": "#/$defs/N"}]},
        ),
    ],
)
def test_b10_nothing_stands_beside_a_reference(over: Any, wanted: Any) -> None:
    """pain B10"""
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/N", **over}}}
    out, _ = clean({"properties": {"x": {"$ref": "#/$defs/N"}}, "$defs": {"N": node}})
    assert out["$defs"]["N"]["properties"]["next"] == wanted
    vertex, notes = clean_schema(out, where="s", vertex=True)
    assert set(vertex["$defs"]["N"]["properties"]["next"]) == {"anyOf"}
    assert bool(notes) == (len(wanted["anyOf"]) == 1)


def test_b10_a_described_circle_may_be_null_or_one_of_several() -> None:
    """pain B10"""
    ref = {"$ref": "#/$defs/N"}
    inner = {"anyOf": [{**ref, "description": "D"}, {"type": "null"}]}
    several = {"anyOf": [{**ref, "description": "D"}, STRING]}
    node = {
        "type": "object",
        "properties": {"a": inner, "b": several, "c": {"allOf": [{"maxProperties": 1}, ref]}},
    }
    out, _ = clean({"properties": {"x": ref}, "$defs": {"N": node}})
    properties = out["$defs"]["N"]["properties"]
    assert properties["a"] == {"description": "D", "anyOf": [ref, {"type": "null"}]}
    assert properties["b"] == {"anyOf": [{"description": "D", "anyOf": [ref]}, STRING]}
    assert properties["c"]["anyOf"] == [ref]


def test_b10_definitions_of_the_same_name_stay_apart() -> None:
    """pain B10"""

    def node(ref: str) -> Any:
        return {"type": "object", "properties": {"n": {"$ref": ref}}}

    refs = ["#/$defs/N", "#/definitions/N", "#/properties/N"]
    out, _ = clean(
        {
            "properties": {"N": node(refs[2]), "b": {"$ref": refs[0]}, "c": {"$ref": refs[1]}},
            "$defs": {"N": node(refs[0])},
            "definitions": {"N": node(refs[1])},
        }
    )
    assert list(out["$defs"]) == ["N", "N_2", "N_3"]


def test_b10_a_reference_to_nothing_but_itself_is_open() -> None:
    """pain B10"""
    loop = {"A": {"$ref": "#/$defs/B"}, "B": {"allOf": [{"$ref": "#/$defs/A"}]}}
    out, notes = prop({"$ref": "#/$defs/A"}, **{"$defs": loop})
    assert out == {}
    assert any("leads only back to itself" in note for note in notes)
    assert clean({"$ref": "#"})[0] == EMPTY


def test_b11_nothing_is_wrapped() -> None:
    """pain B11"""
    deep: Any = STRING
    for _ in range(25):
        deep = {"type": "object", "properties": {"x": deep}, "required": ["x"]}
    assert clean(deep) == (deep, [])


def test_the_root_union_is_one_object() -> None:
    a = {"type": "object", "properties": {"kind": {"const": "a"}, "x": STRING}, "required": ["kind", "x"]}
    b = {"type": "object", "properties": {"kind": {"const": "b"}}, "required": ["kind"]}
    out, notes = clean({"description": "D", "oneOf": [a, b]})
    assert out["properties"] == {"kind": {"type": "string", "enum": ["a", "b"]}, "x": STRING}
    assert out["required"] == ["kind"]
    assert out["description"] == "D\nGive one of these sets of properties: `kind`, `x`; `kind`."
    assert notes == ["moved s: alternatives of the root are one object: the description lists them"]
    closed = [
        {**a, "additionalProperties": False},
        {"properties": {"y": STRING}, "additionalProperties": False},
    ]
    out, _ = clean({"anyOf": closed})
    assert out["additionalProperties"] is False
    assert "required" not in out
    assert out["description"].endswith("`kind`, `x`; nothing (optional `y`).")


def test_a_union_of_required_properties_is_described() -> None:
    schema = {"properties": {"a": STRING, "b": STRING}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    out, notes = clean(schema)
    assert out["description"] == "At least one of these must be given: `a`; `b`."
    assert notes == ["moved s: anyOf of required properties, into the description"]
    one, _ = clean({**schema, "oneOf": schema["anyOf"], "anyOf": None})
    assert one["description"] == "Exactly one of these must be given: `a`; `b`."


def test_a_root_for_something_else_is_described() -> None:
    out, notes = clean({"type": "array", "items": STRING, "title": "T"})
    assert out == {
        **EMPTY,
        "title": "T",
        "description": 'Meant as {"type":"array","items":{"type":"string"}}.',
    } or (out["description"].startswith("Meant as"))
    assert notes == ["dropped s: arguments are always an object: the schema is for something else"]


def test_hostile_depth_ends_with_a_note() -> None:
    for link in ("items", "properties", "allOf", "not", "default"):
        deep: Any = {}
        for _ in range(10_000):
            deep = {link: {"x": deep} if link == "properties" else [deep] if link == "allOf" else deep}
        out, notes = clean_schema({"type": "object", "properties": {"x": deep}}, where="s")
        assert check.jsonschema_problems(out) == []
        assert any("nesting" in str(note) for note in notes)


def test_hostile_chains_and_fans_of_references_end() -> None:
    chain = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(5_000)}
    out, notes = prop({"$ref": "#/$defs/d0"}, **{"$defs": chain})
    assert out == {}
    assert any("too large" in note for note in notes)
    fan: dict[str, Any] = {
        f"d{i}": {"type": "object", "properties": {name: {"$ref": f"#/$defs/d{i + 1}"} for name in "abcd"}}
        for i in range(30)
    }
    _, notes = prop({"$ref": "#/$defs/d0"}, **{"$defs": {**fan, "d30": STRING}})
    assert any("too large" in note for note in notes)


def test_a_real_hostile_mcp_schema() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "minLength": 1},
            "-A": {"type": "number", "description": "lines after"},
            "filter": {"$ref": "#/definitions/filter"},
            "env": {
                "type": "object",
                "patternProperties": {"^[A-Z_]+$": STRING},
                "additionalProperties": False,
            },
            "mode": {"oneOf": [{"const": "fast"}, {"const": "slow"}]},
            "range": {"type": "array", "items": [INTEGER, INTEGER], "additionalItems": False},
        },
        "required": ["pattern", "filter"],
        "additionalProperties": False,
        "if": {"properties": {"mode": {"const": "fast"}}},
        "then": {"required": ["range"]},
        "definitions": {
            "filter": {
                "oneOf": [
                    {
                        "type": "object",
                        "properties": {"and": {"type": "array", "items": {"$ref": "#/definitions/filter"}}},
                    },
                    {"type": "object", "properties": {"field": STRING}, "required": ["field"]},
                ]
            }
        },
    }
    out, notes = clean(schema)
    assert list(out["properties"]) == ["pattern", "-A", "filter", "env", "mode", "range"]
    assert out["required"] == ["pattern", "filter"]
    assert out["properties"]["filter"] == out["$defs"]["filter"]
    assert out["description"].startswith("If it matches")
    assert [note.split(":")[0] for note in notes] == [
        "moved s.if",
        "moved s.properties.env.patternProperties",
    ]
