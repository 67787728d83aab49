"""Signatures nobody thought of: the schema is JSON Schema, Google takes it, and what fits it reaches the function."""

from __future__ import annotations

import inspect
import types
from typing import Any, Literal, Optional

import jsonschema
import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.ir import ToolCall
from dragoman.schema import check_args
from dragoman.tools import Context, ToolDefinition
from dragoman.tools.convert import FORMATS, gemini

#: A type, and values of JSON's that fit it.
Typed = tuple[Any, st.SearchStrategy[Any]]
INTEGERS = st.integers(-(2**40), 2**40)

SIMPLE: list[Typed] = [
    (int, INTEGERS),
    (str, st.text(max_size=10)),
    (bool, st.booleans()),
    (float, st.floats(-1e9, 1e9).map(float)),
    (Literal["a", "b", 3], st.sampled_from(["a", "b", 3])),
]


def _list_of(one: Typed) -> Typed:
    return types.GenericAlias(list, (one[0],)), st.lists(one[1], max_size=3)


def _table_of(one: Typed) -> Typed:
    return types.GenericAlias(dict, (str, one[0])), st.dictionaries(st.text(max_size=5), one[1], max_size=3)


def _pair_of(one: Typed) -> Typed:
    return types.GenericAlias(tuple, (one[0], int)), st.tuples(one[1], INTEGERS).map(list)


def _perhaps(one: Typed) -> Typed:
    return Optional[one[0]], st.none() | one[1]  # noqa: UP045 (built at run time)


def _wrap(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    return st.one_of(inner.map(_list_of), inner.map(_table_of), inner.map(_pair_of), inner.map(_perhaps))


TYPES = st.recursive(st.sampled_from(SIMPLE), _wrap, max_leaves=4)
NAMES = st.sampled_from(
    ["a", "schema", "self_", "name", "model_config", "from_", "p0", "p1", "copy", "json", "x" * 60]
)


@st.composite
def functions(draw: st.DrawFn) -> tuple[Any, dict[str, st.SearchStrategy[Any]], set[str]]:
    names = draw(st.lists(NAMES, unique=True, max_size=5))
    parameters, values, required = [], {}, set()
    for name in names:
        kind, strategy = draw(TYPES)
        optional = draw(st.booleans())
        default = draw(strategy) if optional else inspect.Parameter.empty
        parameters.append(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
        )
        values[name] = strategy
        if not optional:
            required.add(name)

    def function(**given: Any) -> dict[str, Any]:
        return given

    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return function, values, required


@settings(max_examples=60, deadline=None)
@given(functions(), st.data())
def test_what_fits_the_schema_reaches_the_function(made: Any, data: st.DataObject) -> None:
    function, values, required = made
    definition = ToolDefinition.from_function(function)
    schema = msgspec.json.decode(definition.schema)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(schema.get("required", [])) == required
    given_names = {name for name in values if name in required or data.draw(st.booleans())}
    args = {name: data.draw(values[name]) for name in given_names}
    jsonschema.validate(args, schema)
    assert check_args(msgspec.json.encode(args), definition.schema) == ()
    assert definition.execute is not None
    got: Any = definition.execute(args, Context())
    assert set(got) == given_names, "what is not given is left to the function's own default"
    assert msgspec.json.decode(msgspec.json.encode(got)) == args


@settings(max_examples=25, deadline=None)
@given(functions(), st.text(max_size=30))
def test_every_form_carries_every_schema(made: Any, description: str) -> None:
    definition = ToolDefinition.from_function(made[0], name="made", description=description)
    wanted = {"type": "object", **msgspec.json.decode(definition.schema)}
    for name, form in FORMATS.items():
        (tool,) = form.decode_tools(form.encode_tools([definition]))
        assert (tool.name, tool.description) == ("made", description), name
        if form is not gemini:  # Google's own dialect of JSON Schema is proven elsewhere
            assert {"type": "object", **msgspec.json.decode(tool.schema)} == wanted, name


ARGS = st.dictionaries(st.text(max_size=6), INTEGERS | st.text(max_size=6) | st.none(), max_size=4)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["a", "b-c", "d_1"]), ARGS), min_size=1, max_size=4))
def test_every_form_carries_every_call(rows: list[tuple[str, dict[str, Any]]]) -> None:
    calls = [
        ToolCall(id=f"c{index}", name=name, args=msgspec.json.encode(args))
        for index, (name, args) in enumerate(rows)
    ]
    for name, form in FORMATS.items():
        back = form.decode_calls(form.encode_calls(calls))
        assert [(one.id, one.name, one.arguments) for one in back] == [
            (one.id, one.name, one.arguments) for one in calls
        ], name
