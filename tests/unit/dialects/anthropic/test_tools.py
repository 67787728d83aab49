"""Tool definitions, deferred tools, tool choice."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
import pytest

from dragoman.dialects import gemini
from dragoman.dialects.base import Target
from dragoman.errors import InvalidRequest
from dragoman.ir import Location, ServerTool, Tool, ToolChoice
from tests.unit.dialects.anthropic.builders import (
    Json,
    assistant,
    decode,
    refused,
    request,
    system,
    tool,
    tool_result,
    tool_use,
    user,
)


def offered(*messages: Json, **fields: Any) -> list[str]:
    return [tool.name for tool in request(*messages, **fields).tools]


def encoded(**fields: Any) -> Json:
    """What leaves for Google."""
    wire = gemini.encode_request(request(**fields), Target(model="gemini-3-flash-preview"), lambda: "x")
    body: Json = msgspec.json.decode(wire.body)
    return body


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"name": "f", "description": "d", "input_schema": {"type": "object"}},
            Tool(name="f", description="d", schema=b'{"type": "object"}', where="tools[0]"),
        ),
        ({"name": "f", "type": "custom", "input_schema": {}}, Tool(name="f", schema=b"{}", where="tools[0]")),
        ({"name": "f", "type": None, "description": None}, Tool(name="f", schema=b"{}", where="tools[0]")),
        ({"name": "f", "input_schema": None}, Tool(name="f", schema=b"null", where="tools[0]")),
    ],
)
def test_b14_a_tool_is_its_name_its_words_and_its_schema(given: Json, expected: Tool) -> None:
    assert request(tools=[{**given, "cache_control": {"type": "ephemeral"}}]).tools == (expected,)


@pytest.mark.parametrize("tools", [None, []])
def test_no_tools(tools: Any) -> None:
    assert request(tools=tools).tools == ()


@pytest.mark.parametrize(
    ("given", "name", "properties"),
    [
        ({"type": "bash_20250124", "name": "bash"}, "bash", {"command", "restart"}),
        ({"type": "bash_20991231"}, "bash", {"command", "restart"}),
        (
            {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 9},
            "str_replace_based_edit_tool",
            {
                "command",
                "path",
                "file_text",
                "old_str",
                "new_str",
                "insert_line",
                "insert_text",
                "view_range",
            },
        ),
        (
            {"type": "text_editor_20241022", "name": "str_replace_editor"},
            "str_replace_editor",
            {"command", "path"},
        ),
        (
            {"type": "memory_20250818", "name": "memory"},
            "memory",
            {"command", "path", "old_path", "new_path"},
        ),
    ],
)
def test_tools_anthropic_defines_and_the_client_runs(given: Json, name: str, properties: set[str]) -> None:
    decoded = decode(tools=[given])
    (only,) = decoded.request.tools
    assert only.name == name
    assert only.description
    assert properties <= set(msgspec.json.decode(only.schema)["properties"])
    assert decoded.notes == ()


@pytest.mark.parametrize(
    "given",
    [
        {"type": "computer_20251124", "name": "computer"},
        {"type": "someday_20270101", "name": "someday"},
    ],
)
def test_tools_without_a_twin_are_dropped_with_a_note(given: Json) -> None:
    decoded = decode(tools=[tool("f"), given])
    assert [tool.name for tool in decoded.request.tools] == ["f"]
    assert [(note.kind, note.where) for note in decoded.notes] == [("dropped", "tools[1]")]


@pytest.mark.parametrize("kind", ["web_search_20250305", "web_search_20260209", "web_search_20260318"])
def test_k1_web_search_is_googles_own(kind: str) -> None:
    fields: Json = {
        "tools": [{"type": kind, "name": "web_search", "max_uses": 8}],
        "tool_choice": {"type": "tool", "name": "web_search"},
    }
    decoded = decode(**fields)
    (search,) = decoded.request.server_tools
    expected = ServerTool(kind="web_search", name="web_search", where="tools[0]", max_uses=8, forced=True)
    assert search == expected
    assert decoded.notes == ()
    body = encoded(**fields)
    assert body["tools"] == [{"googleSearch": {}}]
    assert body["toolConfig"] == {"includeServerSideToolInvocations": True}


PLACE = {"type": "approximate", "city": "Oslo", "region": None, "country": "NO", "timezone": "Europe/Oslo"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"type": "web_search_20260318", "allowed_domains": ["a.org"], "user_location": PLACE},
            ServerTool(
                kind="web_search",
                name="web_search",
                where="tools[0]",
                allowed_domains=("a.org",),
                location=Location(city="Oslo", country="NO", timezone="Europe/Oslo"),
            ),
        ),
        (
            {"type": "web_search_20250305", "name": "look", "user_location": {"type": "approximate"}},
            ServerTool(kind="web_search", name="look", where="tools[0]"),
        ),
        (
            {"type": "web_fetch_20260318", "name": "web_fetch", "blocked_domains": ["b.org"], "max_uses": 2},
            ServerTool(
                kind="web_fetch",
                name="web_fetch",
                where="tools[0]",
                max_uses=2,
                blocked_domains=("b.org",),
            ),
        ),
        (
            {"type": "code_execution_20260521", "name": "code_execution"},
            ServerTool(kind="code_execution", name="code_execution", where="tools[0]"),
        ),
    ],
)
def test_tools_of_anthropics_servers_are_googles_to_run(given: Json, expected: ServerTool) -> None:
    decoded = decode(tools=[given])
    assert decoded.request.server_tools == (expected,)
    assert (decoded.request.tools, decoded.notes) == ((), ())


@pytest.mark.parametrize(
    ("choice", "forced"),
    [
        (None, [False, False]),
        ({"type": "auto"}, [False, False]),
        ({"type": "any"}, [False, False]),
        ({"type": "none"}, []),
        ({"type": "tool", "name": "web_fetch"}, [False, True]),
        ({"type": "tool", "name": "f"}, [False, False]),
    ],
)
def test_a_choice_counts_for_server_tools_too(choice: Any, forced: list[bool]) -> None:
    tools = [tool("f"), {"type": "web_search_20250305"}, {"type": "web_fetch_20250910", "name": "web_fetch"}]
    found = request(tools=tools, tool_choice=choice).server_tools
    assert [server.forced for server in found] == forced


class TestDeferred:
    TOOLS = (tool("now"), tool("later", defer_loading=True), tool("never", defer_loading=True))

    def test_f4_deferred_tools_wait(self) -> None:
        decoded = decode(tools=self.TOOLS)
        assert [tool.name for tool in decoded.request.tools] == ["now"]
        (note,) = decoded.notes
        assert (note.kind, note.where) == ("withheld", "tools")
        assert "2 tool(s)" in note.why
        assert "later, never" in note.why

    @pytest.mark.parametrize(
        "messages",
        [
            (
                assistant(tool_use(name="S")),
                user(tool_result([{"type": "tool_reference", "tool_name": "later"}])),
            ),
            (assistant(tool_use(name="later")), user(tool_result())),
            (system({"type": "tool_addition", "tool": {"type": "tool_reference", "name": "later"}}),),
        ],
        ids=["referred to", "called before", "added"],
    )
    def test_f4_until_the_conversation_has_them(self, messages: tuple[Json, ...]) -> None:
        assert offered(user("hi"), *messages, tools=self.TOOLS) == ["now", "later"]

    def test_f4_a_forced_tool_is_shown(self) -> None:
        assert offered(tools=self.TOOLS, tool_choice={"type": "tool", "name": "never"}) == ["now", "never"]

    def test_f4_where_anthropic_would_search_nobody_could_load_them(self) -> None:
        search = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
        decoded = decode(tools=[*self.TOOLS, search])
        assert [tool.name for tool in decoded.request.tools] == ["now", "later", "never"]
        assert decoded.notes == ()

    def test_f4_the_placeholder_of_claude_code_is_never_shown(self) -> None:
        placeholder = tool("DeferredToolPlaceholder", defer_loading=True)
        assert offered(tools=[placeholder, tool("Bash", defer_loading=None)]) == ["Bash"]


class TestChanges:
    ADD: ClassVar[Json] = {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "f"}}
    REMOVE: ClassVar[Json] = {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "f"}}

    def test_a_removed_tool_is_not_offered(self) -> None:
        decoded = decode(
            user("a"), assistant(tool_use(name="f")), system(self.REMOVE), tools=[tool("f"), tool("g")]
        )
        assert [tool.name for tool in decoded.request.tools] == ["g"]
        assert [(note.kind, note.where) for note in decoded.notes] == [("withheld", "tools")]
        assert decoded.request.messages[-1].parts[0].text == "The tool f is no longer available."  # type: ignore[union-attr]

    def test_the_last_word_counts(self) -> None:
        assert offered(user("a"), system(self.REMOVE), system(self.ADD), tools=[tool("f")]) == ["f"]
        assert offered(user("a"), system(self.ADD, self.REMOVE), tools=[tool("f")]) == []

    def test_a_forced_tool_is_there(self) -> None:
        choice = {"type": "tool", "name": "f"}
        assert offered(user("a"), system(self.REMOVE), tools=[tool("f")], tool_choice=choice) == ["f"]

    def test_a_tool_may_come_with_its_definition(self) -> None:
        new = tool("new", description="d", defer_loading=True)
        add = {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": new}}
        decoded = decode(user("a"), system(add), tools=[tool("f")])
        assert [tool.name for tool in decoded.request.tools] == ["f", "new"]
        assert decoded.request.tools[1].description == "d"
        assert decoded.request.messages[-1].parts[0].text == "The tool new is now available."  # type: ignore[union-attr]

    def test_a_change_of_nothing_changes_nothing(self) -> None:
        assert offered(
            user("a"), system({"type": "tool_removal"}, {"type": "tool_addition"}), tools=[tool("f")]
        ) == ["f"]


@pytest.mark.parametrize(
    ("given", "choice"),
    [
        (None, ToolChoice()),
        ({"type": "auto"}, ToolChoice()),
        ({"type": "any"}, ToolChoice(mode="any")),
        ({"type": "none"}, ToolChoice(mode="none")),
        ({"type": "tool", "name": "f"}, ToolChoice(mode="any", names=("f",))),
        ({"type": "auto", "disable_parallel_tool_use": True}, ToolChoice(parallel=False)),
        ({"type": "auto", "disable_parallel_tool_use": None}, ToolChoice()),
        ({"type": "any", "disable_parallel_tool_use": True}, ToolChoice(mode="any", parallel=False)),
        (
            {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
            ToolChoice(mode="any", names=("f",), parallel=False),
        ),
        (
            {"type": "tool", "name": "code_execution", "disable_parallel_tool_use": True},
            ToolChoice(parallel=False),
        ),
    ],
)
def test_b15_tool_choice(given: Any, choice: ToolChoice) -> None:
    server = {"type": "code_execution_20260521", "name": "code_execution"}
    assert request(tools=[tool("f"), server], tool_choice=given).tool_choice == choice


@pytest.mark.parametrize("name", ["unknown", ""])
def test_b15_an_unknown_forced_tool_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        encoded(tools=[tool("f")], tool_choice={"type": "tool", "name": name})
    assert caught.value.where == "tool_choice"


def test_b15_a_nameless_toolset_does_not_make_a_nameless_choice_legal() -> None:
    with pytest.raises(InvalidRequest):
        encoded(
            tools=[tool("f"), {"type": "mcp_toolset", "mcp_server_name": "s"}], tool_choice={"type": "tool"}
        )


@pytest.mark.parametrize("kind", ["auto", "any", "none", "tool"])
def test_b15_a_choice_without_tools_is_no_choice(kind: str) -> None:
    assert "toolConfig" not in encoded(tool_choice={"type": kind, "name": "f"})


def test_a_tool_without_a_name_is_refused() -> None:
    assert refused(tools=[tool("f"), {"type": "custom", "input_schema": {}}]).where == "tools[1]"
