"""Tools and the choice among them."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.dialects.openai_chat import custom_tools
from dragoman.dialects.openai_chat.encode import Echo
from dragoman.ir import Location, ServerTool, Tool, ToolChoice
from tests.unit.dialects.openai_chat.builders import Json, custom_tool, decode, noted, refused, request, tool

SCHEMA = {"type": "object", "properties": {"pattern": {"type": "string"}}}
SCHEMA_TEXT = b'{"type": "object", "properties": {"pattern": {"type": "string"}}}'
LARK = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: x"}}

READ: dict[str, tuple[Json, Tool]] = {
    "function": (
        tool("f", description="does", parameters=SCHEMA, strict=True),
        Tool(name="f", description="does", schema=SCHEMA_TEXT, where="tools[0].function"),
    ),
    "b7 without parameters": (tool("f"), Tool(name="f", where="tools[0].function")),
    "null parameters": (
        tool("f", parameters=None, description=None),
        Tool(name="f", where="tools[0].function"),
    ),
    "without a type": ({"function": {"name": "f"}}, Tool(name="f", where="tools[0].function")),
    "flat": (
        {"type": "function", "name": "f", "parameters": SCHEMA},
        Tool(name="f", schema=SCHEMA_TEXT, where="tools[0]"),
    ),
    "g1 custom": (
        custom_tool("patch", description="applies"),
        Tool(name="patch", description="applies", schema=custom_tools.INPUT_SCHEMA, where="tools[0].custom"),
    ),
    "custom of plain text": (
        custom_tool("patch", format={"type": "text"}),
        Tool(name="patch", schema=custom_tools.INPUT_SCHEMA, where="tools[0].custom"),
    ),
    "flat custom": (
        {"type": "custom", "name": "patch", "description": "d"},
        Tool(name="patch", description="d", schema=custom_tools.INPUT_SCHEMA, where="tools[0].custom"),
    ),
}


@pytest.mark.parametrize("name", READ)
def test_tools_are_read(name: str) -> None:
    wire, expected = READ[name]
    assert request(tools=[wire]).tools == (expected,)
    assert noted(tools=[wire]) == []


def test_a_grammar_is_told_to_the_model() -> None:
    told = "The input must fit this lark grammar:\nstart: x"
    wire = [custom_tool("a", description="does", format=LARK), custom_tool("b", format=LARK)]
    assert [found.description for found in request(tools=wire).tools] == [f"does\n\n{told}", told]
    assert noted(tools=wire) == [
        ("moved", "tools[0].custom.format.grammar"),
        ("moved", "tools[1].custom.format.grammar"),
    ]


def test_the_answer_learns_which_tools_take_text() -> None:
    assert decode(tools=[tool("f"), custom_tool("patch")]).echo == Echo(custom=frozenset({"patch"}))
    assert decode().echo == Echo()


@pytest.mark.parametrize("empty", [None, []])
def test_no_tools(empty: Any) -> None:
    assert request(tools=empty, functions=empty).tools == ()
    assert noted(tools=empty, functions=empty) == []


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"web_search_options": {}}, ServerTool(kind="web_search", where="web_search_options")),
        (
            {
                "web_search_options": {
                    "search_context_size": "medium",
                    "user_location": {"type": "approximate"},
                }
            },
            ServerTool(kind="web_search", where="web_search_options"),
        ),
        (
            {"web_search_options": {"user_location": {"approximate": {"country": "NO"}}}},
            ServerTool(kind="web_search", where="web_search_options", location=Location(country="NO")),
        ),
        (
            {"tools": [{"type": "web_search_preview"}]},
            ServerTool(kind="web_search", name="web_search_preview", where="tools[0]"),
        ),
    ],
)
def test_web_search_is_googles(asked: Json, expected: ServerTool) -> None:
    assert request(**asked).server_tools == (expected,)
    assert noted(**asked) == []
    assert request(**asked, tool_choice="none").server_tools == ()


def test_no_search_is_no_search() -> None:
    assert request(web_search_options=None).server_tools == ()


def test_how_much_to_read_is_dropped_with_a_note() -> None:
    assert noted(web_search_options={"search_context_size": "low"}) == [
        ("dropped", "web_search_options.search_context_size")
    ]


def test_the_older_functions() -> None:
    asked = decode(functions=[{"name": "f", "parameters": SCHEMA}], function_call={"name": "f"})
    assert asked.request.tools == (Tool(name="f", schema=SCHEMA_TEXT, where="functions[0]"),)
    assert asked.request.tool_choice == ToolChoice(mode="any", names=("f",), parallel=False)
    assert asked.echo == Echo(legacy=True)


@pytest.mark.parametrize(("word", "mode"), [(None, "auto"), ("auto", "auto"), ("none", "none")])
def test_the_older_function_call(word: str | None, mode: Any) -> None:
    choice = request(functions=[{"name": "f"}], function_call=word).tool_choice
    assert choice == ToolChoice(mode=mode, parallel=False)


def test_tools_win_over_the_older_functions() -> None:
    asked = decode(tools=[tool("new")], functions=[{"name": "old"}])
    assert [found.name for found in asked.request.tools] == ["new"]
    assert [(note.kind, note.where) for note in asked.notes] == [("dropped", "functions")]
    assert asked.echo == Echo()


ADD = {"type": "function", "function": {"name": "add"}}
CHOICES: dict[str, tuple[Any, ToolChoice]] = {
    "nothing": (None, ToolChoice()),
    "none": ("none", ToolChoice(mode="none")),
    "auto": ("auto", ToolChoice()),
    "required": ("required", ToolChoice(mode="any")),
    "any": ("any", ToolChoice(mode="any")),
    "validated, as copilot sends it": ("validated", ToolChoice(mode="validated")),
    "function": (ADD, ToolChoice(mode="any", names=("add",))),
    "flat function": ({"type": "function", "name": "add"}, ToolChoice(mode="any", names=("add",))),
    "custom": (
        {"type": "custom", "custom": {"name": "patch"}},
        ToolChoice(mode="any", names=("patch",)),
    ),
    "b15 allowed auto": (
        {
            "type": "allowed_tools",
            "allowed_tools": {"mode": "auto", "tools": [ADD, {"custom": {"name": "p"}}]},
        },
        ToolChoice(mode="auto", names=("add", "p")),
    ),
    "allowed required": (
        {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [ADD]}},
        ToolChoice(mode="any", names=("add",)),
    ),
}


@pytest.mark.parametrize("name", CHOICES)
def test_b15_every_choice(name: str) -> None:
    wire, expected = CHOICES[name]
    assert request(tool_choice=wire).tool_choice == expected


@pytest.mark.parametrize(("word", "parallel"), [(None, True), (True, True), (False, False)])
def test_parallel_calls(word: bool | None, parallel: bool) -> None:
    assert request(parallel_tool_calls=word).tool_choice == ToolChoice(parallel=parallel)


REFUSED: dict[str, tuple[Json, str, str]] = {
    "server tool": ({"tools": [tool("f"), {"type": "code_interpreter"}]}, "tools[1]", "no twin here"),
    "no name": ({"tools": [{"type": "function"}]}, "tools[0]", "needs a name"),
    "no nested name": ({"tools": [{"function": {}}]}, "tools[0].function", "needs a name"),
    "no custom name": ({"tools": [{"type": "custom"}]}, "tools[0].custom", "needs a name"),
    "schema of another kind": (
        {"tools": [tool("f", parameters=[])]},
        "tools[0].function.parameters",
        "Expected `object`",
    ),
    "no list": ({"tools": {}}, "tools", "Expected `array | null`"),
    "no tool": ({"tools": [7]}, "tools[0]", "Expected `object`"),
    "functions": ({"functions": [{"parameters": {}}]}, "functions[0]", "needs a name"),
    "choice": ({"tool_choice": "sometimes"}, "tool_choice", "'sometimes' is not one of none, auto"),
    "choice of nothing": ({"tool_choice": {}}, "tool_choice", "by its name"),
    "choice of a number": ({"tool_choice": 7}, "tool_choice", "Expected"),
    "choice of another kind": ({"tool_choice": {"type": "mcp"}}, "tool_choice.type", "'mcp' is not one of"),
    "nothing allowed": (
        {"tool_choice": {"type": "allowed_tools"}},
        "tool_choice.allowed_tools.tools",
        "at least one",
    ),
    "allowed without a name": (
        {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"tools": [{}]}}},
        "tool_choice.allowed_tools.tools[0]",
        "by its name",
    ),
    "allowed in another way": (
        {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "x", "tools": [ADD]}}},
        "tool_choice.allowed_tools.mode",
        "'x' is not one of",
    ),
    "function_call": ({"functions": [{"name": "f"}], "function_call": "x"}, "function_call", "'x' is not"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_tool_is_refused_with_its_place(name: str) -> None:
    fields, where, why = REFUSED[name]
    error = refused(**fields)
    assert (error.where, why in error.message) == (where, True), error


@pytest.mark.parametrize("text", ["", 'a\n"b" \\ ü', '{"input": 1}'])
def test_g1_text_goes_in_and_comes_out(text: str) -> None:
    assert custom_tools.unwrap(custom_tools.wrap(text)) == text


@pytest.mark.parametrize("args", [b"{}", b'{"input":7}', b'{"patch": "x"}'])
def test_arguments_of_another_form_are_not_lost(args: bytes) -> None:
    assert custom_tools.unwrap(args) == args.decode()
