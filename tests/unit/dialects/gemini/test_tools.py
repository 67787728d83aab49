"""Declarations and tool choice."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.dialects.base import Target
from dragoman.dialects.gemini import tools as tools_module
from dragoman.dialects.gemini.tools import declare
from dragoman.errors import InvalidRequest
from dragoman.ir import Tool, ToolChoice
from tests.unit.dialects.gemini.builders import (
    NEW,
    READ,
    body_of,
    call,
    contents_of,
    encode,
    model,
    notes_of,
    result,
    user,
)

WRITE = Tool(name="write", where="tools[1]")
TARGET = Target(model=NEW)


def declarations(*tools: Tool, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = body_of(tools=tools, **options)["tools"][0]["functionDeclarations"]
    return found


def test_b14_a_declaration_has_only_known_fields() -> None:
    assert declarations(READ, WRITE) == [
        {
            "name": "read",
            "description": "Read a file.",
            "parametersJsonSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
        },
        {"name": "write", "parametersJsonSchema": {"type": "object", "properties": {}}},
    ]


def test_b7_the_older_message_has_no_parameters_where_there_are_none() -> None:
    found = declarations(READ, WRITE, proto=True)
    assert found[0]["parameters"]["type"] == "OBJECT"
    assert "parametersJsonSchema" not in found[0]
    assert found[1] == {"name": "write"}


def test_h7_the_order_of_tools_is_kept() -> None:
    names = [f"t{number}" for number in (3, 1, 2)]
    assert [tool["name"] for tool in declarations(*(Tool(name=name) for name in names))] == names


def test_a_name_declared_twice_counts_once_and_is_noted() -> None:
    again = Tool(name="read", description="other", where="tools[2]")
    assert [tool["description"] for tool in declarations(READ, again)] == ["Read a file."]
    assert [(note.kind, note.where) for note in notes_of(tools=(READ, again))] == [("dropped", "tools[2]")]


HOSTILE = ["1mcp", "a b", "mcp__x/y", "ünï", "n" * 80, "n" * 81, "", "a\nb", "a b ", "-x", "名前"]


def test_b13_illegal_names_are_renamed_reversibly() -> None:
    tools = tuple(Tool(name=name, where=f"tools[{index}]") for index, name in enumerate(HOSTILE))
    found = [tool["name"] for tool in declarations(*tools)]
    assert len(set(found)) == len(HOSTILE)
    assert all(len(name) <= 64 and name.isascii() and (name[0].isalpha() or name[0] == "_") for name in found)
    names = declare(tools, TARGET).names
    assert [names.from_wire(name) for name in found] == HOSTILE
    assert [note.where for note in notes_of(tools=tools) if note.kind == "renamed"] == [
        f"tools[{index}].name" for index in range(len(HOSTILE))
    ]


def test_b13_history_uses_the_same_names_as_the_declarations() -> None:
    body = body_of(
        user("q"),
        model(call(name="a b")),
        user(result(name="a b")),
        tools=(Tool(name="a b", where="tools[0]"),),
    )
    name = body["tools"][0]["functionDeclarations"][0]["name"]
    assert body["contents"][1]["parts"][0]["functionCall"]["name"] == name
    assert body["contents"][2]["parts"][0]["functionResponse"]["name"] == name


def test_b13_a_call_of_a_tool_that_is_gone_keeps_a_legal_name() -> None:
    turn = contents_of(user("q"), model(call(name="gone/tool")), user(result(name="gone/tool")))
    name = turn[1]["parts"][0]["functionCall"]["name"]
    assert name.startswith("gone_tool_")
    assert turn[2]["parts"][0]["functionResponse"]["name"] == name


def test_the_memo_gives_what_a_fresh_translation_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = (
        READ,
        Tool(name="a b", schema=b'{"$schema":"x","properties":{"a":{"const":1}}}', where="tools[1]"),
    )
    kept = encode(tools=tools)
    again = encode(tools=tools)
    monkeypatch.setattr(tools_module, "_DECLARATIONS", type(tools_module._DECLARATIONS)(0))
    fresh = encode(tools=tools)
    assert kept.body == again.body == fresh.body
    assert kept.notes == again.notes == fresh.notes


def test_the_memo_tells_back_ends_and_forms_apart() -> None:
    tools = (
        Tool(
            name="t",
            schema=b'{"properties":{"a":{"description":"d","anyOf":[{"type":"string"},{"type":"integer"}]}}}',
        ),
    )
    bodies = {
        encode(tools=tools, backend=backend, proto=proto).body
        for backend in ("gemini", "vertex")
        for proto in (False, True)
    }
    assert len(bodies) == 4
    assert declare(tools, TARGET) is declare(tools, Target(model="gemini-2.5-pro"))


def test_vertex_gets_nothing_beside_any_of() -> None:
    schema = b'{"properties":{"a":{"description":"d","anyOf":[{"type":"string"},{"type":"integer"}]}}}'
    found = declarations(Tool(name="t", schema=schema), backend="vertex")
    assert list(found[0]["parametersJsonSchema"]["properties"]["a"]) == ["anyOf"]


@pytest.mark.parametrize("schema", [b"{", b'{"a":"\xff"}', b"[" * 100_000])
def test_a_schema_that_cannot_be_read_is_the_callers_mistake(schema: bytes) -> None:
    with pytest.raises(InvalidRequest) as caught:
        encode(tools=(Tool(name="t", schema=schema, where="tools[0]"),))
    assert caught.value.where.startswith("tools[0].input_schema")


def config(choice: ToolChoice, *tools: Tool) -> Any:
    found = body_of(tools=tools, tool_choice=choice).get("toolConfig")
    return found["functionCallingConfig"] if found else None


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (ToolChoice(), None),
        (ToolChoice(mode="any"), {"mode": "ANY"}),
        (ToolChoice(mode="none"), {"mode": "NONE"}),
        (ToolChoice(mode="validated"), {"mode": "VALIDATED"}),
        (ToolChoice(mode="any", names=("read",)), {"mode": "ANY", "allowedFunctionNames": ["read"]}),
        (
            ToolChoice(mode="any", names=("write", "read")),
            {"mode": "ANY", "allowedFunctionNames": ["write", "read"]},
        ),
        (ToolChoice(mode="auto", names=("read",)), {"mode": "VALIDATED", "allowedFunctionNames": ["read"]}),
        (
            ToolChoice(mode="validated", names=("read",)),
            {"mode": "VALIDATED", "allowedFunctionNames": ["read"]},
        ),
        (ToolChoice(mode="none", names=("read",)), {"mode": "NONE"}),
    ],
)
def test_b15_every_tool_choice(choice: ToolChoice, expected: Any) -> None:
    assert config(choice, READ, WRITE) == expected
    assert len(declarations(READ, WRITE, tool_choice=choice)) == 2


@pytest.mark.parametrize(
    "choice", [ToolChoice(mode="any"), ToolChoice(mode="none"), ToolChoice(mode="any", names=("x",))]
)
def test_b15_without_tools_there_is_no_config(choice: ToolChoice) -> None:
    assert config(choice) is None
    assert "tools" not in body_of(tool_choice=choice)


def test_b15_a_choice_of_an_unknown_tool_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="'gone'") as caught:
        encode(tools=(READ,), tool_choice=ToolChoice(mode="any", names=("gone",)))
    assert caught.value.where == "tool_choice"


def test_b13_b15_a_chosen_name_is_the_declared_one() -> None:
    tool = Tool(name="a b", where="tools[0]")
    allowed = config(ToolChoice(mode="any", names=("a b",)), tool)["allowedFunctionNames"]
    assert allowed == [declarations(tool)[0]["name"]]


def test_b15_one_call_at_a_time_is_asked_for_in_words() -> None:
    once = ToolChoice(parallel=False)
    assert (
        "at most one function"
        in body_of(tools=(READ,), tool_choice=once)["systemInstruction"]["parts"][0]["text"]
    )
    assert "systemInstruction" not in body_of(tool_choice=once)
    assert "systemInstruction" not in body_of(tools=(READ,))
