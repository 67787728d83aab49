"""The model's arguments: what is reported, what is mended, and what is left alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.schema import check_args, clean_schema, compile_schema, repair_args
from dragoman.schema.validate import Document, Validator

STRING, INTEGER, NUMBER, BOOLEAN = ({"type": kind} for kind in ("string", "integer", "number", "boolean"))


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def check(value: Any, document: Any) -> tuple[str, ...]:
    return check_args(json.dumps(value).encode(), json.dumps(document).encode())


def mend(value: Any, document: Any) -> tuple[Any, list[str]]:
    args = json.dumps(value).encode()
    mended, notes = repair_args(args, json.dumps(document).encode(), where="call")
    assert (mended is args) == (json.loads(mended) == value and not notes)
    return json.loads(mended), [str(note) for note in notes]


NODE = {
    "$defs": {"N": schema(v=INTEGER, kids={"type": "array", "items": {"$ref": "#/$defs/N"}})},
    "$ref": "#/$defs/N",
}


@pytest.mark.parametrize(
    ("value", "document", "problem"),
    [
        ({"a": "x"}, schema(a=INTEGER), "a: expected integer, got string"),
        ({"a": True}, schema(a=INTEGER), "a: expected integer, got boolean true"),
        (
            {"a": {"b": [1, "x"]}},
            schema(a=schema(b={"items": INTEGER})),
            "a.b[1]: expected integer, got string",
        ),
        ({}, {**schema(a=STRING), "required": ["a", "b"]}, "arguments: `a`, `b` must be given"),
        ({"a": 1, "z": 1}, {**schema(a=INTEGER), "additionalProperties": False}, "z: must not be given"),
        ({"z": 1}, {**schema(), "additionalProperties": STRING}, "z: expected string, got integer 1"),
        ({"a": "z"}, schema(a={"enum": ["x", "y"]}), 'a: must be one of ["x","y"]'),
        ({"a": 1}, schema(a={"const": True}), "a: must be one of [true]"),
        ({"a": [1, 2]}, schema(a={"prefixItems": [INTEGER, STRING]}), "a[1]: expected string, got integer 2"),
        ({"a": [1, 2]}, schema(a={"items": [INTEGER], "additionalItems": False}), "a[1]: must not be given"),
        ({"a": 1}, schema(a={"anyOf": [STRING, BOOLEAN]}), "a: matches none of the 2 alternatives"),
        ({"a": 1}, schema(a={"oneOf": [STRING, {"type": "null"}]}), "a: expected string, got integer 1"),
        (
            {"a": 1, "b": 1},
            schema(a={"anyOf": [STRING, INTEGER]}, b=STRING),
            "b: expected string, got integer 1",
        ),
        ({"a": 1}, schema(a={"allOf": [INTEGER, {"minimum": 2}]}), "a: must be at least 2"),
        ({"a": 3}, schema(a={"maximum": 2}), "a: must be at most 2"),
        ({"a": 0}, schema(a={"exclusiveMinimum": 0}), "a: must be above 0"),
        ({"a": 0}, schema(a={"minimum": 0, "exclusiveMinimum": True}), "a: must be above 0"),
        ({"a": 9}, schema(a={"exclusiveMaximum": 9}), "a: must be below 9"),
        ({"a": ""}, schema(a={"minLength": 1}), "a: the length must be at least 1"),
        ({"a": "xx"}, schema(a={"maxLength": 1}), "a: the length must be at most 1"),
        ({"a": []}, schema(a={"minItems": 1}), "a: the number of items must be at least 1"),
        ({"a": [1, 2]}, schema(a={"maxItems": 1}), "a: the number of items must be at most 1"),
        ({}, {"minProperties": 1}, "arguments: the number of properties must be at least 1"),
        ({"a": 1, "b": 2}, {"maxProperties": 1}, "arguments: the number of properties must be at most 1"),
        ({"kids": [{"kids": [{"v": "x"}]}]}, NODE, "kids[0].kids[0].v: expected integer, got string"),
        ([], schema(), "arguments: expected object, got array"),
    ],
)
def test_problems_name_their_place(value: Any, document: Any, problem: str) -> None:
    assert check(value, document) == (problem,)


@pytest.mark.parametrize(
    ("value", "document"),
    [
        ({"a": 5.0}, schema(a=INTEGER)),
        ({"a": None}, schema(a={"type": "string", "nullable": True})),
        ({"a": None}, schema(a={"$ref": "#/x", "nullable": True})),
        ({"a": 1}, schema(a={"$ref": "http://elsewhere"})),
        ({"x-1": 1}, {"patternProperties": {"^x": True}, "additionalProperties": False}),
        ({"a": 1}, True),
        ({"a": 1}, "no schema"),
        ({"a": 1}, schema(a={"minimum": "x", "type": "whatever"})),
        (
            {"a": "x"},
            schema(a={"properties": {"b": STRING}, "required": ["b"], "items": STRING, "minimum": 5}),
        ),
        ({"a": "x"}, schema(a={"prefixItems": [INTEGER], "additionalProperties": False})),
    ],
)
def test_what_the_schema_allows_or_does_not_say_is_fine(value: Any, document: Any) -> None:
    assert check(value, document) == ()


def test_what_is_no_json_is_reported_and_left_alone() -> None:
    broken = b'{"a": '
    assert check_args(broken, b"{}") == ("arguments: not valid JSON",)
    assert repair_args(broken, b"{}", where="w") == (broken, ())
    assert repair_args(b"[1]", b"{}", where="w") == (b"[1]", ())
    assert check_args(b'{"a":1}', b"{nonsense") == ()


@pytest.mark.parametrize(
    ("value", "document", "mended", "note"),
    [
        ({"a": '{"b": 1}'}, schema(a=schema(b=INTEGER)), {"a": {"b": 1}}, "mended call.a: string to object"),
        (
            {"a": '["x"]'},
            schema(a={"type": "array", "items": STRING}),
            {"a": ["x"]},
            "mended call.a: string to array",
        ),
        ({"a": "5"}, schema(a=INTEGER), {"a": 5}, "mended call.a: string to integer"),
        ({"a": "5.0"}, schema(a=INTEGER), {"a": 5}, "mended call.a: string to integer"),
        ({"a": "-1.5e3"}, schema(a=NUMBER), {"a": -1500.0}, "mended call.a: string to number"),
        ({"a": "true"}, schema(a=BOOLEAN), {"a": True}, "mended call.a: string to boolean"),
        ({"a": "False"}, schema(a=BOOLEAN), {"a": False}, "mended call.a: string to boolean"),
        ({"a": 5.0}, schema(a=INTEGER), {"a": 5}, "mended call.a: number to integer"),
        (
            {"a": "x"},
            schema(a={"type": "array", "items": STRING}),
            {"a": ["x"]},
            "mended call.a: string to array",
        ),
        (
            {"a": None, "b": 1},
            schema(a=STRING),
            {"b": 1},
            "mended call.a: null for an optional property left out",
        ),
        (
            {"a": "5"},
            schema(a={"anyOf": [INTEGER, {"type": "null"}]}),
            {"a": 5},
            "mended call.a: string to integer",
        ),
        ({"a": "5"}, schema(a={"oneOf": [INTEGER, BOOLEAN]}), {"a": 5}, "mended call.a: string to integer"),
        ({"a": "5"}, schema(a={"anyOf": [INTEGER, NUMBER]}), {"a": 5}, "mended call.a: string to integer"),
        ({"a": "5"}, schema(a={"allOf": [INTEGER]}), {"a": 5}, "mended call.a: string to integer"),
        ({"a": ["1", 2]}, schema(a={"items": INTEGER}), {"a": [1, 2]}, "mended call.a[0]: string to integer"),
        (
            {"a": ["1"]},
            schema(a={"prefixItems": [INTEGER, STRING]}),
            {"a": [1]},
            "mended call.a[0]: string to integer",
        ),
        ({"k": "1"}, {"additionalProperties": INTEGER}, {"k": 1}, "mended call.k: string to integer"),
        ({"kids": [{"v": "1"}]}, NODE, {"kids": [{"v": 1}]}, "mended call.kids[0].v: string to integer"),
    ],
)
def test_what_is_plainly_meant_is_mended(value: Any, document: Any, mended: Any, note: str) -> None:
    assert mend(value, document) == (mended, [note])


def test_mending_goes_inside_what_it_unpacked_and_says_so_twice() -> None:
    assert mend({"a": '{"b": "1"}'}, schema(a=schema(b=INTEGER))) == (
        {"a": {"b": 1}},
        ["mended call.a: string to object", "mended call.a.b: string to integer"],
    )


def test_one_wrong_value_does_not_keep_another_from_being_mended() -> None:
    mended, _ = mend({"a": "5", "b": "x"}, schema(a=INTEGER, b=INTEGER))
    assert mended == {"a": 5, "b": "x"}


@pytest.mark.parametrize(
    ("value", "document"),
    [
        ({"a": "5"}, schema(a=STRING)),
        ({"a": '{"b": 1}'}, schema(a={"type": ["string", "object"]})),
        ({"a": "5"}, schema(a={"anyOf": [STRING, INTEGER]})),
        ({"a": "\\title{x}\\n"}, schema(a=STRING, b=INTEGER)),
        ({"a": 5}, schema(a=STRING)),
        ({"a": "five"}, schema(a=INTEGER)),
        ({"a": 5.5}, schema(a=INTEGER)),
        ({"a": "1e400"}, schema(a=NUMBER)),
        ({"a": "0x10"}, schema(a=INTEGER)),
        ({"a": "7"}, schema(a={"type": "integer", "maximum": 5})),
        ({"a": "[1]"}, schema(a={"type": "object"})),
        ({"a": 1}, schema(a={"type": "object"})),
        ({"a": 1}, schema(a={"type": "boolean"})),
        ({"a": "x"}, schema(a={"type": "null"})),
        ({"a": "5"}, schema(a={"anyOf": [INTEGER, {"type": "array", "items": STRING}]})),
        ({"a": "true"}, schema(a={"anyOf": [BOOLEAN, {"type": "array", "items": STRING}]})),
        ({"a": "x"}, schema(a={"type": "array", "items": INTEGER})),
        ({"a": "x"}, schema(a={"type": "array"})),
        ({"a": "x"}, schema(a={"type": "array", "prefixItems": [STRING]})),
        ({"a": None}, {**schema(a=STRING), "required": ["a"]}),
        ({"z": None, "y": "5"}, {**schema(a=STRING), "minProperties": 3}),
        (
            {"x-1": "5"},
            {"patternProperties": {"^x": INTEGER}, "additionalProperties": INTEGER, "minProperties": 2},
        ),
    ],
)
def test_p2_what_is_not_certain_is_left_as_it_is(value: Any, document: Any) -> None:
    """known problem P2"""
    assert mend(value, document) == (value, [])


def test_p2_strings_beside_a_mended_value_keep_every_backslash() -> None:
    """known problem P2"""
    text = '#define A \\\\\n \\title{x} \\u0041 \\\\n 日本 "q" \''
    mended, _ = mend({"text": text, "n": "1"}, schema(text=STRING, n=INTEGER))
    assert mended == {"text": text, "n": 1}


def test_large_integers_survive_mending() -> None:
    mended, _ = mend({"a": 2**70, "n": "1"}, schema(a=INTEGER, n=INTEGER))
    assert mended == {"a": 2**70, "n": 1}


def test_b7_the_property_we_had_to_invent_never_reaches_the_tool() -> None:
    """known problem B7"""
    document = schema(options={"type": "object"}, list={"type": "array"})
    out, _ = compile_schema(document, where="s")
    assert out is not None
    (invented,) = out["properties"]["options"]["properties"]
    mended, notes = mend({"options": {invented: None, "x": 1}, "list": [{invented: 1}]}, document)
    assert (mended, notes) == ({"options": {"x": 1}, "list": [{}]}, [])
    own = schema(options=schema(**{invented: STRING}))
    assert mend({"options": {invented: "mine"}}, own) == ({"options": {invented: "mine"}}, [])


def test_depth_is_no_danger() -> None:
    deep = b'{"kids":[' * 2000 + b"]}" * 2000
    text = json.dumps(NODE).encode()
    assert check_args(deep, text) == ("arguments: not valid JSON",)
    assert repair_args(deep, text, where="w")[0] is deep
    legal = b'{"v":"1","kids":[' * 100 + b"]}" * 100
    assert check_args(legal, text)
    assert repair_args(legal, text, where="w")[0] is legal
    packed = json.dumps({"a": "[" * 100 + "]" * 100}).encode()
    assert repair_args(packed, json.dumps(schema(a={"type": "array"})).encode(), where="w")[0] is packed


def test_a_schema_deeper_than_python_reaches_is_read_one_level_at_a_time() -> None:
    deep: dict[str, Any] = STRING
    for _ in range(2_000):
        deep = schema(a=deep, b=STRING)
    assert Validator(Document(deep)).ok({"b": "x"}, deep)
    assert not Validator(Document(deep)).ok({"b": 1}, deep)


def test_a_schema_that_fans_out_without_end_is_given_up() -> None:
    laughs: dict[str, Any] = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(25)}
    properties = {"b": INTEGER, "a": {"$ref": "#/$defs/d0"}}
    document = {"$defs": {**laughs, "d25": INTEGER}, "properties": properties}
    assert len(check({"b": 1, "a": "1"}, document)) == 20
    assert check({"b": "1", "a": 1}, document) == ("b: expected integer, got string",)
    assert mend({"b": "1", "a": 1}, document) == ({"b": "1", "a": 1}, [])
    loop = {
        "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}] * 2}},
        "properties": {"a": {"$ref": "#/$defs/A"}, "b": INTEGER},
    }
    assert mend({"a": "1", "b": "1"}, loop)[0] == {"a": "1", "b": 1}


def test_a_huge_schema_is_read_but_not_remembered() -> None:
    document = {**schema(a=INTEGER), "description": "x" * 70_000}
    assert mend({"a": "1"}, document)[0] == {"a": 1}


def test_arguments_are_judged_by_the_original_not_by_what_google_saw() -> None:
    document = schema(a={"type": "integer", "multipleOf": 1, "enum": [1, 2]})
    clean, _ = clean_schema(document, where="s")
    assert check({"a": 3}, document)
    assert check({"a": 1}, clean) == ()
