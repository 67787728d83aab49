"""Tool specifications, and tools that run on Amazon's servers."""

from __future__ import annotations

import pytest

from dragoman.ir import ServerKind, ServerTool, Tool
from tests.unit.dialects.bedrock.builders import CLIENT, Json, refused, request, spec, tools

CACHE = {"cachePoint": {"type": "default"}}


def test_a_specification() -> None:
    (tool,) = tools(spec("Read", description="Reads.", strict=True)).request.tools
    assert tool == Tool(
        name="Read", description="Reads.", schema=b'{"type": "object"}', where="toolConfig.tools[0].toolSpec"
    )


@pytest.mark.parametrize("schema", [{}, {"json": None}])
def test_a_tool_without_a_schema_takes_anything(schema: Json) -> None:
    if schema:
        assert refused(toolConfig={"tools": [spec(inputSchema=schema)]}).where.endswith("inputSchema.json")
    else:
        assert tools(spec(inputSchema=schema)).request.tools[0].schema == b"{}"


def test_cache_points_are_passed_over_and_places_stay_right() -> None:
    found = tools(CACHE, spec("a"), CACHE, spec("b"))
    assert [tool.where for tool in found.request.tools] == [
        "toolConfig.tools[1].toolSpec",
        "toolConfig.tools[3].toolSpec",
    ]
    assert found.notes == ()


@pytest.mark.parametrize(
    ("name", "kind"), [("nova_grounding", "web_search"), ("nova_code_interpreter", "code_execution")]
)
def test_what_amazon_runs_for_the_model_google_runs(name: str, kind: ServerKind) -> None:
    found = tools(spec(), {"systemTool": {"name": name}})
    where = "toolConfig.tools[1].systemTool"
    assert found.request.server_tools == (ServerTool(kind=kind, name=name, where=where),)
    assert found.notes == ()


@pytest.mark.parametrize(("chosen", "forced"), [("nova_grounding", True), ("Read", False)])
def test_a_system_tool_that_is_chosen_must_be_used(chosen: str, forced: bool) -> None:
    wires = (spec("Read"), {"systemTool": {"name": "nova_grounding"}})
    found = tools(*wires, toolChoice={"tool": {"name": chosen}}).request
    assert [tool.forced for tool in found.server_tools] == [forced]
    assert found.tool_choice.names == (() if forced else ("Read",))


def test_none_means_no_tool_of_anybodys() -> None:
    config = {"tools": [{"systemTool": {"name": "nova_grounding"}}]}
    fields = {"tool_choice": {"type": "none"}}
    assert request(toolConfig=config, additionalModelRequestFields=fields).server_tools == ()


def test_other_system_tools_are_dropped_with_a_note() -> None:
    found = tools({"systemTool": {"name": "nova_someday"}})
    assert found.request.server_tools == ()
    assert [(note.kind, note.where) for note in found.notes] == [
        ("dropped", "toolConfig.tools[0].systemTool")
    ]


def test_b_a_duplicate_key_of_a_schema_survives() -> None:
    raw = (
        b'{"messages":[{"role":"user","content":[{"text":"x"}]}],"toolConfig":{"tools":[{"toolSpec":'
        b'{"name":"f","inputSchema":{"json":{"required":[],"required":["a"]}}}}]}}'
    )
    (tool,) = CLIENT.decode_request(raw, {}).request.tools
    assert tool.schema == b'{"required":[],"required":["a"]}'


@pytest.mark.parametrize(
    ("tool", "where"),
    [
        (spec(""), "toolConfig.tools[0].toolSpec"),
        ({"toolSpec": {}}, "toolConfig.tools[0].toolSpec"),
        (spec(inputSchema={"json": []}), "toolConfig.tools[0].toolSpec.inputSchema.json"),
        (spec(inputSchema=5), "toolConfig.tools[0].toolSpec.inputSchema"),
        ({"systemTool": {}}, "toolConfig.tools[0].systemTool"),
        ({}, "toolConfig.tools[0]"),
    ],
)
def test_a_wrong_tool_is_refused_at_its_place(tool: Json, where: str) -> None:
    assert refused(toolConfig={"tools": [tool]}).where == where


def test_null_is_no_tools() -> None:
    assert (
        CLIENT.decode_request(
            b'{"messages":[{"role":"user","content":[{"text":"x"}]}],"toolConfig":{"tools":null}}', {}
        ).request.tools
        == ()
    )
