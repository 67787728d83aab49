"""A typed function is a tool: what a model is told, and what the function gets."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from dragoman import ir
from dragoman.tools import Context, InvalidTool, ToolDefinition, ToolFailed, tool
from dragoman.tools.definition import definition_of, find_definition, is_async
from tests.unit.tools.core import sample_tools


def schema_of(definition: ToolDefinition) -> dict[str, Any]:
    schema: dict[str, Any] = msgspec.json.decode(definition.schema)
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


def call(function: Callable[..., Any], context: Context | None = None, **args: Any) -> Any:
    definition = ToolDefinition.from_function(function)
    assert definition.execute is not None
    return definition.execute(args, context or Context())


def test_every_kind_of_annotation_is_described() -> None:
    schema = schema_of(ToolDefinition.from_function(sample_tools.annotated))
    assert schema["required"] == ["text", "number"]
    properties = schema["properties"]
    assert properties["text"] == {"type": "string"}
    assert properties["ratio"] == {"type": "number", "default": 0.5}
    assert properties["flag"] == {"type": "boolean", "default": False}
    assert properties["mode"] == {"enum": ["fast", "slow"], "default": "fast"}
    assert properties["colour"]["default"] == "red"
    assert properties["maybe"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert properties["either"] == {"anyOf": [{"type": "integer"}, {"type": "string"}], "default": 1}
    assert properties["many"]["items"] == {"type": "string"}
    assert properties["two"]["prefixItems"] == [{"type": "integer"}, {"type": "string"}]
    assert properties["unique"]["uniqueItems"] is True
    assert properties["anything"] == {}
    assert schema["$defs"]["Point"]["required"] == ["x"]
    assert schema["$defs"]["Options"]["required"] == ["deep"]
    assert schema["$defs"]["Query"]["properties"]["limit"]["minimum"] == 1


def test_arguments_become_what_the_annotations_say() -> None:
    got = call(
        sample_tools.annotated,
        text="t",
        number=5.0,
        colour="blue",
        table={"a": 1},
        two=[3, "b"],
        unique=[2, 2],
        point={"x": 1},
        options={"deep": True},
        query={"text": "q"},
        pair=["l", 1],
    )
    assert got["number"] == "5"
    assert got["colour"] == "<Colour.BLUE: 'blue'>"
    assert got["two"] == "(3, 'b')"
    assert got["unique"] == "{2}"
    assert got["point"] == "Point(x=1, y=0)"
    assert got["query"] == "Query(text='q', limit=10)"
    assert got["pair"] == "Pair(left='l', right=1)"
    assert got["ratio"] == "0.5"
    assert got["many"] == "[]"


@pytest.mark.parametrize("function", [sample_tools.google, sample_tools.numpy, sample_tools.rest])
def test_docstrings_of_every_style_describe_tool_and_parameters(function: Callable[..., Any]) -> None:
    definition = ToolDefinition.from_function(function)
    assert set(schema_of(definition)) == {"type", "properties", "required"}
    expected = "Forecast the weather.\n\nWorks for cities only,\nand only on Earth."
    assert definition.description == expected
    properties = schema_of(definition)["properties"]
    assert properties["city"]["description"] == "The name of the city, in English."
    assert properties["days"] == {"type": "integer", "description": "How far ahead.", "default": 1}


def test_a_function_without_words_is_still_a_tool() -> None:
    definition = ToolDefinition.from_function(sample_tools.undocumented)
    assert (definition.name, definition.description) == ("undocumented", "")


def test_a_broken_docstring_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    import docstring_parser

    def broken(_text: str) -> None:
        raise docstring_parser.ParseError("no")

    monkeypatch.setattr(docstring_parser, "parse", broken)
    assert ToolDefinition.from_function(sample_tools.with_context).description == "Says who asks."


def test_annotations_outrank_the_docstring() -> None:
    properties = schema_of(ToolDefinition.from_function(sample_tools.described))["properties"]
    assert properties["path"]["description"] == "relative to the root"
    assert (properties["size"]["description"], properties["age"]["description"]) == ("in bytes", "in years")
    assert properties["age"]["maximum"] == 150, "pydantic's constraints reach the model"
    assert properties["age"]["default"] == 1
    assert call(sample_tools.described, path="p", size=1) == "p 1 1"


async def test_the_context_is_given_and_not_declared() -> None:
    told: list[str] = []
    context = Context(session="s", caller="c", progress=told.append)
    for function in (sample_tools.with_context, sample_tools.with_context_async):
        assert list(schema_of(ToolDefinition.from_function(function))["properties"]) == ["text"]
    assert call(sample_tools.with_context, context, text="t") == "s/c: t"
    assert await call(sample_tools.with_context_async, context, text="t") == "s: t"
    assert told == ["working on t", "waiting"]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"first": 1}, [1, 2, 3]),
        ({"first": 1, "second": 5}, [1, 5, 3]),
        ({"first": 1, "third": 7}, [1, 2, 7]),
        ({"second": 9}, [1, 9, 3]),
    ],
)
def test_positional_parameters_are_filled_by_name(args: dict[str, int], expected: list[int]) -> None:
    definition = ToolDefinition.from_function(sample_tools.positional)
    assert definition.execute is not None
    assert definition.execute(args, Context()) == expected


def test_pydantic_does_what_msgspec_cannot() -> None:
    schema = schema_of(ToolDefinition.from_function(sample_tools.whom))
    assert schema["$defs"]["Person"]["properties"]["age"]["minimum"] == 0
    assert schema["properties"]["home"]["default"] == "/srv"
    words = call(sample_tools.whom, person={"name": "Ann", "age": 3}, pet={"meow": "m"}, home="/x")
    assert words == "Person Ann Cat PosixPath('/x')"
    assert call(sample_tools.whom, person={"name": "Ann", "age": 3}).endswith("PosixPath('/srv')")
    assert call(sample_tools.lists, either=["a"]) == "['a']"


@pytest.mark.parametrize(
    ("function", "args", "words"),
    [
        (sample_tools.annotated, {"text": "t", "number": "x"}, "Expected `int`, got `str` - at `$.number`"),
        (sample_tools.whom, {"person": {"name": "A", "age": -1}}, "person.age: Input should be greater"),
    ],
)
def test_arguments_that_do_not_fit_are_told_with_their_place(
    function: Callable[..., Any], args: dict[str, Any], words: str
) -> None:
    with pytest.raises(ToolFailed, match="The arguments do not fit") as caught:
        call(function, **args)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (sample_tools.starred, r"starred.names: a model cannot fill \*names"),
        (sample_tools.double_starred, r"double_starred.names: a model cannot fill \*\*names"),
        (sample_tools.unannotated, "unannotated.name: needs an annotation"),
        (sample_tools.unknowable, "unknowable.bad: this type cannot be described"),
        (sample_tools.unresolvable, "unresolvable: an annotation cannot be read.*'Nowhere' is not defined"),
        (lambda text: text, "needs an annotation"),
        (lambda: 1, "'': a tool's name has 1 to 128"),
        (print, "cannot fill"),
        (5, "this has no signature to read"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_refused_with_the_place(function: Any, words: str) -> None:
    with pytest.raises(InvalidTool, match=words):
        ToolDefinition.from_function(function)


def test_without_pydantic_its_types_are_refused_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic", None)
    with pytest.raises(InvalidTool, match=r"lists.either: this type cannot be described"):
        ToolDefinition.from_function(sample_tools.lists)


async def test_methods_partials_and_callable_objects_are_functions_too() -> None:
    service = sample_tools.Service()
    note = ToolDefinition.from_function(service.note)
    assert (note.name, note.description) == ("note", "Keep a text.")
    assert call(service.note, text="a") == 1
    assert service.seen == ["a"]
    bound = functools.partial(sample_tools.google, days=3)
    assert ToolDefinition.from_function(bound, name="soon").name == "soon"
    assert call_named(bound, city="Oslo") == "Oslo 3"
    shout = ToolDefinition.from_function(service, name="shout")
    assert shout.execute is not None
    assert is_async(shout.execute)
    assert await shout.execute({"text": "a"}, Context()) == "A"
    assert is_async(functools.partial(sample_tools.with_context_async, "x"))
    assert not is_async(sample_tools.google)


def call_named(function: Callable[..., Any], **args: Any) -> Any:
    definition = ToolDefinition.from_function(function, name="named")
    assert definition.execute is not None
    return definition.execute(args, Context())


def test_no_parameters_are_an_empty_object() -> None:
    definition = ToolDefinition.from_function(lambda: 1, name="one", description="One.")
    assert schema_of(definition) == {"type": "object", "properties": {}}
    assert definition.description == "One."


def test_the_decorator_leaves_the_function_what_it_is() -> None:
    @tool
    def bare(a: int) -> int:
        return a

    @tool(name="renamed", risk="read", deterministic=True, timeout_s=1)
    def dressed(a: int) -> int:
        return a

    assert (bare(2), dressed(3)) == (2, 3)
    assert definition_of(bare).name == "bare"
    found = find_definition(dressed)
    assert found is not None
    assert (found.name, found.risk, found.deterministic, found.timeout_s) == ("renamed", "read", True, 1)
    assert definition_of(found) is found
    assert find_definition(sample_tools.google) is None
    assert find_definition(5) is None


def test_models_of_every_kind_describe_arguments() -> None:
    def find(query: sample_tools.Query) -> str:
        """Looks."""
        return f"{query.text} {query.limit}"

    def greet(person: sample_tools.Person, context: Context) -> str:
        return f"{person.name} {context.session}"

    def place(point: sample_tools.Point) -> int:
        """Puts it there."""
        return point.x

    finding = ToolDefinition.from_model(sample_tools.Query, find)
    assert (finding.name, finding.description) == ("find", "What to look for.")
    assert schema_of(finding)["required"] == ["text"]
    assert finding.execute is not None
    assert finding.execute({"text": "a"}, Context()) == "a 10"
    greeting = ToolDefinition.from_model(sample_tools.Person, greet, name="hello", risk="read")
    assert (greeting.name, greeting.risk, greeting.description) == ("hello", "read", "Somebody.")
    assert set(schema_of(greeting)) == {"type", "properties", "required"}
    assert greeting.execute is not None
    assert greeting.execute({"name": "A", "age": 1}, Context(session="s")) == "A s"
    with pytest.raises(ToolFailed, match="age: Field required"):
        greeting.execute({"name": "A"}, Context())
    placing = ToolDefinition.from_model(sample_tools.Point, place)
    assert placing.description == "Puts it there.", "a dataclass's own signature is no description"
    declared = ToolDefinition.from_model(sample_tools.Options)
    assert (declared.name, declared.execute) == ("Options", None)


def test_a_model_that_contains_itself_stays_whole() -> None:
    schema = schema_of(ToolDefinition.from_model(sample_tools.Tree))
    jsonschema.validate({"name": "a", "children": [{"name": "b"}]}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"name": "a", "children": [{}]}, schema)


@pytest.mark.parametrize("model", [sample_tools.Unknowable, sample_tools.Colour, list[int]])
def test_a_model_that_is_no_object_is_refused(model: Any) -> None:
    with pytest.raises(InvalidTool):
        ToolDefinition.from_model(model)


@pytest.mark.parametrize("schema", [b'{"type":"object"}', '{"type":"object"}', {"type": "object"}])
def test_a_schema_is_taken_in_every_spelling(schema: Any) -> None:
    definition = ToolDefinition.from_schema("t", schema, description="d")
    assert definition.schema == b'{"type":"object"}'
    assert definition.to_ir() == ir.Tool(name="t", description="d", schema=definition.schema, where="t")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"name": ""}, "1 to 128 visible characters"),
        ({"name": "a b"}, "no spaces"),
        ({"name": "a\n"}, "no spaces"),
        ({"name": "a" * 129}, "1 to 128"),
        ({"name": "t", "schema": b"nonsense"}, "t: the schema is no JSON"),
        ({"name": "t", "schema": b"\xff"}, "t: the schema is no JSON"),
        ({"name": "t", "schema": b"[]"}, "must describe an object"),
        ({"name": "t", "schema": b'{"type":"string"}'}, "must describe an object"),
        ({"name": "t", "timeout_s": 0}, "timeout_s must be above 0"),
    ],
)
def test_a_definition_that_no_model_could_use_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidTool, match=words):
        ToolDefinition(**settings)


def test_a_default_that_json_cannot_say_is_left_out() -> None:
    def odd(where: Path = Path("/"), what: Any = sample_tools) -> None: ...

    properties = schema_of(ToolDefinition.from_function(odd))["properties"]
    assert "default" not in properties["what"]
