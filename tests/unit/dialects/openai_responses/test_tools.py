"""Tools and tool choice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects.openai_responses.tools import INPUT_SCHEMA, ClientTool
from dragoman.ir import Location, ServerTool, ToolChoice
from tests.unit.dialects.openai_responses.builders import (
    Json,
    call,
    decode,
    function,
    namespace,
    notes,
    output,
    refused,
    request,
    user,
)

PATCH: Json = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Freeform patch",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
}
AGENTS = namespace("multi_agent_v1", function("spawn_agent"), function("wait_agent"), description="Helpers.")
SEARCH: Json = {"type": "tool_search", "execution": "client"}


def names(*tools: Json, items: tuple[Json, ...] = (), **fields: Any) -> list[str]:
    return [tool.name for tool in request(user("q"), *items, tools=list(tools), **fields).tools]


def test_functions_flat_and_nested_are_the_same_tool() -> None:
    flat = {**function(), "description": "Reads"}
    nested = {
        "type": "function",
        "function": {key: flat[key] for key in ("name", "description", "parameters")},
    }
    (one,), (other,) = request(tools=[flat]).tools, request(tools=[nested]).tools
    assert one == other
    assert (one.description, json.loads(one.schema), one.where) == ("Reads", flat["parameters"], "tools[0]")
    assert request(tools=[{"name": "bare"}]).tools[0].schema == b"{}"
    assert request(tools=[function(parameters=None)]).tools[0].schema == b"{}"
    assert request(tools=None).tools == ()


def test_foreign_keywords_of_a_schema_are_left_to_the_schema_cleaner() -> None:
    parameters = {"type": "object", "properties": {"message": {"type": "string", "encrypted": True}}}
    (tool,) = request(tools=[function(parameters=parameters)]).tools
    assert json.loads(tool.schema) == parameters


def test_g1_a_free_form_tool_is_a_function_with_one_text_and_shows_its_grammar() -> None:
    (tool,) = request(tools=[PATCH]).tools
    assert tool.schema == INPUT_SCHEMA
    assert tool.description.startswith("Freeform patch\n\n")
    assert "lark" in tool.description
    assert tool.description.endswith("start: /.+/")
    assert decode(tools=[PATCH]).echo.client_tool("apply_patch") == ClientTool(
        "custom_tool_call", "apply_patch"
    )
    plain = {"type": "custom", "name": "say", "format": {"type": "text"}}
    assert request(tools=[plain]).tools[0].description == ""


def test_a_namespace_is_flat_for_gemini_and_deep_for_the_client() -> None:
    nested = {**PATCH, "name": "exec"}
    got = decode(tools=[AGENTS, namespace("functions", nested)])
    assert [tool.name for tool in got.request.tools] == [
        "multi_agent_v1.spawn_agent",
        "multi_agent_v1.wait_agent",
        "functions.exec",
    ]
    assert got.echo.client_tool("functions.exec") == ClientTool("custom_tool_call", "exec", "functions")
    assert [text.text for text in got.request.system] == [
        "The tools whose names begin with `multi_agent_v1.`: Helpers."
    ]


BUILT_IN = {
    "local_shell": ({"type": "local_shell"}, "local_shell_call", ["command"]),
    "shell": ({"type": "shell", "environment": {"type": "local"}}, "shell_call", ["commands"]),
    "apply_patch": ({"type": "apply_patch"}, "apply_patch_call", ["type", "path"]),
    "tool_search": (SEARCH, "tool_search_call", ["query"]),
}


@pytest.mark.parametrize("name", BUILT_IN)
def test_tools_openai_defines_and_the_client_runs(name: str) -> None:
    wire, item, required = BUILT_IN[name]
    got = decode(tools=[wire])
    (tool,) = got.request.tools
    assert (tool.name, json.loads(tool.schema)["required"]) == (name, required)
    assert tool.description
    assert got.echo.client_tool(name) == ClientTool(item, name)
    assert got.notes == ()


def test_a_search_with_its_own_words_and_schema_keeps_them() -> None:
    parameters = {"type": "object", "properties": {"goal": {"type": "string"}}}
    (tool,) = request(tools=[{**SEARCH, "description": "Find", "parameters": parameters}]).tools
    assert (tool.description, json.loads(tool.schema)) == ("Find", parameters)


@pytest.mark.parametrize(
    "wire",
    [
        {"type": "file_search", "vector_store_ids": ["v"]},
        {"type": "image_generation"},
        {"type": "computer_use_preview"},
        {"type": "programmatic_tool_calling"},
        {"type": "shell", "environment": {"type": "container_auto"}},
        {"type": "tool_search"},
        {"type": "tool_search", "execution": "server"},
        {"type": "invented_tomorrow"},
    ],
)
def test_tools_of_openais_servers_are_dropped_with_a_note(wire: Json) -> None:
    assert names(wire, function()) == ["read"]
    (note,) = notes(tools=[wire, function()])
    assert note.startswith("dropped tools[0]: ")


@pytest.mark.parametrize("kind", ["web_search", "web_search_2025_08_26", "web_search_preview"])
def test_web_search_is_googles(kind: str) -> None:
    got = request(tools=[{"type": kind, "external_web_access": True}])
    assert (got.server_tools, got.tools) == ((hosted("web_search", kind),), ())
    assert notes(tools=[{"type": kind, "external_web_access": True, "search_context_size": "medium"}]) == []


def hosted(kind: Any, name: str, **settings: Any) -> ServerTool:
    return ServerTool(kind=kind, name=name, where="tools[0]", **settings)


def test_the_settings_of_a_search_are_kept() -> None:
    wire = {
        "type": "web_search",
        "filters": {"allowed_domains": ["a.org"], "blocked_domains": ["b.org"]},
        "user_location": {"type": "approximate", "city": "Oslo"},
    }
    assert request(tools=[wire]).server_tools == (
        hosted(
            "web_search",
            "web_search",
            allowed_domains=("a.org",),
            blocked_domains=("b.org",),
            location=Location(city="Oslo"),
        ),
    )


def test_the_code_interpreter_is_googles() -> None:
    wire = {"type": "code_interpreter", "container": {"type": "auto"}}
    assert request(tools=[wire]).server_tools == (hosted("code_execution", "code_interpreter"),)
    assert notes(tools=[wire]) == []


@pytest.mark.parametrize(
    ("wire", "field"),
    [
        ({"type": "web_search", "search_context_size": "high"}, "search_context_size"),
        ({"type": "web_search", "external_web_access": False}, "external_web_access"),
        ({"type": "code_interpreter", "container": {"type": "auto", "file_ids": ["f"]}}, "container"),
    ],
)
def test_settings_google_has_no_twin_of_are_dropped_with_a_note(wire: Json, field: str) -> None:
    (note,) = notes(tools=[wire])
    assert note.startswith(f"dropped tools[0].{field}: ")


HOSTED = [function(), {"type": "web_search"}, {"type": "code_interpreter", "container": "c"}]


@pytest.mark.parametrize(
    ("choice", "forced"),
    [
        (None, {"web_search": False, "code_interpreter": False}),
        ("auto", {"web_search": False, "code_interpreter": False}),
        ("required", {"web_search": False, "code_interpreter": False}),
        ("none", {}),
        ({"type": "web_search_preview"}, {"web_search": True, "code_interpreter": False}),
        ({"type": "code_interpreter"}, {"web_search": False, "code_interpreter": True}),
        ({"type": "function", "name": "read"}, {"web_search": False, "code_interpreter": False}),
        (
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "web_search"}, {"type": "shell"}]},
            {"web_search": False},
        ),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "auto"}}, {}),
    ],
)
def test_a_choice_counts_for_hosted_tools_too(choice: Any, forced: dict[str, bool]) -> None:
    found = request(tools=HOSTED, tool_choice=choice).server_tools
    assert {tool.name: tool.forced for tool in found} == forced


@pytest.mark.parametrize(
    ("tools", "where", "words"),
    [
        ([{"type": "mcp"}], "tools[0]", "needs a server_label"),
        ([{"type": "mcp", "server_label": "s", "connector_id": "c"}], "tools[0]", "OpenAI's own"),
        (
            [{"type": "mcp", "server_label": "s", "require_approval": "maybe"}],
            "tools[0].require_approval",
            "'maybe' is not one of always, never",
        ),
        ([{"type": "function"}], "tools[0]", "needs a name"),
        ([function(), namespace("")], "tools[1]", "namespace needs a name"),
        ([namespace("a", {"type": "web_search"})], "tools[0].tools[0]", "cannot stand in a namespace"),
        ([namespace("a", {"type": "function"})], "tools[0].tools[0]", "needs a name"),
        ([5], "tools[0]", "Expected `object`"),
        ({}, "tools", "Expected `array"),
    ],
)
def test_tools_that_cannot_be_used_are_refused(tools: Any, where: str, words: str) -> None:
    error = refused(tools=tools)
    assert error.where == where
    assert words in error.message


def test_a_namespace_may_be_empty() -> None:
    assert names({"type": "namespace", "name": "n", "description": "d"}) == []


DEFERRED = function("send_mail", defer_loading=True)
FOUND = {
    "type": "tool_search_output",
    "call_id": "call_s",
    "execution": "client",
    "status": "completed",
    "tools": [namespace("mail", function("send", defer_loading=True))],
}
ASKED = {"type": "tool_search_call", "call_id": "call_s", "execution": "client", "arguments": {"query": "m"}}


def test_f4_deferred_tools_wait_until_the_client_finds_them() -> None:
    assert names(SEARCH, DEFERRED) == ["tool_search"]
    assert notes(user("q"), tools=[SEARCH, DEFERRED]) == [
        "withheld tools: 1 tool(s) wait until the conversation loads them: send_mail"
    ]


def test_f4_where_nobody_can_search_nothing_is_hidden() -> None:
    assert names(DEFERRED) == ["send_mail"]
    assert names({"type": "tool_search"}, DEFERRED) == ["send_mail"]
    nested = {"type": "function", "function": {"name": "a", "defer_loading": True}}
    assert names(SEARCH, nested) == ["tool_search"]


def test_f4_what_a_search_found_can_be_called() -> None:
    assert names(SEARCH, items=(ASKED, FOUND)) == ["tool_search", "mail.send"]
    again = {**FOUND, "call_id": "call_t"}
    assert names(SEARCH, items=(ASKED, FOUND, {**ASKED, "call_id": "call_t"}, again)) == [
        "tool_search",
        "mail.send",
    ]


def test_f4_a_search_can_load_what_was_declared_and_deferred() -> None:
    found = {**FOUND, "tools": [DEFERRED]}
    assert names(SEARCH, DEFERRED, items=(ASKED, found)) == ["tool_search", "send_mail"]


def test_f4_a_search_that_found_nothing_says_so() -> None:
    got = request(user("q"), ASKED, {**FOUND, "tools": []}, tools=[SEARCH])
    assert "none" in str(got.messages[-1].parts)


def test_f4_a_tool_that_was_called_or_is_demanded_is_not_hidden() -> None:
    history = (call(name="send_mail"), output())
    assert names(SEARCH, DEFERRED, items=history) == ["tool_search", "send_mail"]
    wanted = {"type": "function", "name": "send_mail"}
    assert names(SEARCH, DEFERRED, tool_choice=wanted) == ["tool_search", "send_mail"]


ALL = [function(), AGENTS, PATCH, {"type": "shell"}, {"type": "web_search"}]


@pytest.mark.parametrize(
    ("choice", "mode", "chosen"),
    [
        (None, "auto", ()),
        ("auto", "auto", ()),
        ("none", "none", ()),
        ("required", "any", ()),
        ("validated", "validated", ()),
        ({"type": "function", "name": "read"}, "any", ("read",)),
        ({"type": "function", "function": {"name": "read"}}, "any", ("read",)),
        ({"type": "custom", "name": "apply_patch"}, "any", ("apply_patch",)),
        (
            {"type": "function", "name": "spawn_agent", "namespace": "multi_agent_v1"},
            "any",
            ("multi_agent_v1.spawn_agent",),
        ),
        ({"type": "function", "name": "spawn_agent"}, "any", ("multi_agent_v1.spawn_agent",)),
        ({"type": "function", "name": "unknown"}, "any", ("unknown",)),
        (
            {"type": "namespace", "name": "multi_agent_v1"},
            "any",
            ("multi_agent_v1.spawn_agent", "multi_agent_v1.wait_agent"),
        ),
        ({"type": "shell"}, "any", ("shell",)),
        ({"type": "local_shell"}, "auto", ()),
        ({"type": "web_search_preview"}, "auto", ()),
        ({"type": "file_search"}, "auto", ()),
        ({"type": "computer_use"}, "auto", ()),
        (
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "read"}]},
            "any",
            ("read",),
        ),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {"tools": [{"type": "custom", "name": "apply_patch"}, {"type": "shell"}]},
            },
            "auto",
            ("apply_patch", "shell"),
        ),
        ({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "web_search"}]}, "none", ()),
        ({"type": "allowed_tools", "mode": "auto"}, "none", ()),
    ],
)
def test_tool_choice(choice: Any, mode: Any, chosen: tuple[str, ...]) -> None:
    assert request(tools=ALL, tool_choice=choice).tool_choice == ToolChoice(mode=mode, names=chosen)


@pytest.mark.parametrize(
    ("choice", "where"),
    [
        ("sometimes", "tool_choice"),
        ({"type": "mcp", "server_label": "s"}, "tool_choice.type"),
        ({"type": "function"}, "tool_choice.type"),
        ({}, "tool_choice.type"),
        ({"type": "allowed_tools", "mode": "x", "tools": [{"type": "shell"}]}, "tool_choice"),
        (5, "tool_choice"),
    ],
)
def test_a_choice_that_means_nothing_is_refused(choice: Any, where: str) -> None:
    assert refused(tools=ALL, tool_choice=choice).where == where


@pytest.mark.parametrize(("given", "parallel"), [(None, True), (True, True), (False, False)])
def test_parallel_calls(given: bool | None, parallel: bool) -> None:
    assert request(tools=ALL, parallel_tool_calls=given).tool_choice.parallel is parallel


def test_the_same_tools_are_decoded_once() -> None:
    assert request(tools=ALL).tools[0] is request(user("other"), tools=ALL).tools[0]
