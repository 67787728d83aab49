"""Tool search that the service runs: asked for, shown in the answer, and brought back by the history."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dragoman.dialects.base import Answer
from dragoman.dialects.openai_responses.encode import Echo
from dragoman.dialects.openai_responses.tool_search import found_remotely, output_item, search_tool
from dragoman.ir import (
    Event,
    RemoteMcpServer,
    ServerCall,
    ServerResult,
    Text,
    TextDelta,
    ToolCall,
    ToolChoice,
    ToolFilter,
    seal,
)
from tests.unit.dialects.openai_responses.builders import (
    call,
    decode,
    function,
    namespace,
    notes,
    output,
    reasoning,
    request,
    user,
)
from tests.unit.dialects.openai_responses.stream_checks import answer, items, names, stream_bytes, whole
from tests.unit.dialects.stream_checks import SIGNATURE, whole_stream

Json = dict[str, Any]

SEARCH: Json = {"type": "tool_search"}
ORDERS = function("list_orders", defer_loading=True, description="Orders of a customer")
CRM = namespace("crm", ORDERS, function("get_profile", defer_loading=True), description="Customers")
MAIL = function("send_mail", defer_loading=True)
TOOLS = [function("read"), SEARCH, CRM, MAIL]


def searched(identity: str | None = "tsc_1", **more: Any) -> Json:
    arguments = {"paths": ["crm"]}
    base = {"type": "tool_search_call", "execution": "server", "call_id": None, "status": "completed"}
    return {**base, "id": identity, "arguments": arguments, **more}


def found(*tools: Json, identity: str | None = "tso_1", status: str = "completed") -> Json:
    base = {"type": "tool_search_output", "execution": "server", "call_id": None, "status": status}
    return {**base, "id": identity, "tools": list(tools)}


class TestAsked:
    @pytest.mark.parametrize("wire", [SEARCH, {**SEARCH, "execution": "server"}])
    def test_hosted_search_is_ours_to_run(self, wire: Json) -> None:
        got = decode(tools=[function("read"), wire, CRM, MAIL])
        assert got.request.server_tools == (search_tool("tools[1]"),)
        assert [(tool.name, tool.deferred) for tool in got.request.tools] == [
            ("read", False),
            ("crm.list_orders", True),
            ("crm.get_profile", True),
            ("send_mail", True),
        ]
        assert got.notes == ()

    def test_without_deferred_tools_there_is_nothing_to_search(self) -> None:
        assert request(tools=[function("read"), SEARCH]).server_tools == ()
        why = "dropped tools[1]: tool_search has nothing to find: no tool is deferred"
        assert notes(tools=[function("read"), SEARCH]) == [why]

    @pytest.mark.parametrize("choice", ["none", "auto", {"type": "function", "name": "read"}])
    def test_no_choice_loads_everything(self, choice: Any) -> None:
        assert request(tools=TOOLS, tool_choice=choice).server_tools == (search_tool("tools[1]"),)

    def test_a_summary_loads_nothing_either(self) -> None:
        got = request(user("q"), {"type": "compaction_trigger"}, tools=TOOLS)
        assert got.server_tools == (search_tool("tools[1]"),)
        assert got.tool_choice == ToolChoice(mode="none")

    def test_tools_that_come_with_the_conversation_wait_as_well(self) -> None:
        more = {"type": "additional_tools", "tools": [function("late", defer_loading=True)]}
        got = request(user("q"), more, tools=[function("read"), SEARCH])
        assert got.server_tools == (search_tool("tools[1]"),)
        assert [(tool.name, tool.deferred) for tool in got.tools] == [("read", False), ("late", True)]
        assert got.found == ()


class TestHistory:
    def test_what_was_found_is_known_in_its_order(self) -> None:
        history = (
            user("q"),
            searched(),
            found(MAIL, namespace("crm", ORDERS)),
            call("c1", "list_orders", namespace="crm"),
            output(call_id="c1"),
            call("c2", "get_profile", namespace="crm"),
            output(call_id="c2"),
        )
        assert request(*history, tools=TOOLS).found == ("send_mail", "crm.list_orders", "crm.get_profile")

    def test_a_client_that_searches_itself_shows_what_it_finds(self) -> None:
        client = {**SEARCH, "execution": "client"}
        got = request(user("q"), call("c1", "send_mail"), output(call_id="c1"), tools=[client, MAIL])
        assert got.found == ()
        assert got.server_tools == ()

    def test_call_output_and_what_follows_are_one_turn(self) -> None:
        got = request(
            user("q"), reasoning(), searched(), found(namespace("crm", ORDERS)), call("c1"), tools=TOOLS
        )
        _, asking, result, then = got.messages[1].parts
        assert asking == ServerCall(
            id="1", kind="tool_search", name="tool_search", args=b'{"paths": ["crm"]}'
        )
        assert result == ServerResult(call_id="1", kind="tool_search", tools=("crm.list_orders",))
        assert isinstance(then, ToolCall)

    def test_ids_may_be_gone(self) -> None:
        asking, result = (
            request(user("q"), searched(None), found(identity=None), tools=TOOLS).messages[1].parts
        )
        assert asking == ServerCall(id="", kind="tool_search", name="tool_search", args=b'{"paths": ["crm"]}')
        assert result == ServerResult(call_id="", kind="tool_search")

    def test_what_another_service_found_is_declared_where_the_client_searches(self) -> None:
        client = {**SEARCH, "execution": "client"}
        got = request(user("q"), found(namespace("crm", ORDERS)), tools=[client])
        assert [tool.name for tool in got.tools] == ["tool_search", "crm.list_orders"]


def search(*found: str, error: str = "") -> list[Event]:
    """What the gateway shows of a search."""
    asking = ServerCall(id="1", kind="tool_search", name="tool_search", args=b'{"paths": ["crm"]}')
    return [asking, ServerResult(call_id="1", kind="tool_search", tools=found, error=error)]


def declared(*sources: list[Json], carries: bool = False) -> Answer:
    echo = Echo(sources=tuple(msgspec.json.encode(source) for source in sources), carries=carries)
    return msgspec.structs.replace(answer(), echo=echo)


class TestAnswer:
    def test_the_items_are_openais(self) -> None:
        events = whole_stream([TextDelta("so"), *search("crm.list_orders", "send_mail"), TextDelta("then")])
        said, asking, result, then = items(events, declared(TOOLS))
        assert (said["type"], then["type"]) == ("message", "message")
        assert asking == searched()
        assert result == found({**CRM, "tools": [ORDERS]}, MAIL)

    def test_functions_of_one_namespace_stand_together(self) -> None:
        events = whole_stream(search("crm.get_profile", "send_mail", "crm.list_orders", "gone"))
        result = items(events, declared(TOOLS))[1]
        assert result == found({**CRM, "tools": [CRM["tools"][1], CRM["tools"][0]]}, MAIL)

    def test_a_namespace_needs_a_description_and_functions_this_apis_form(self) -> None:
        nested = {"type": "function", "defer_loading": True, "function": {"name": "f", "parameters": None}}
        bare = {"type": "namespace", "name": "ns", "tools": [nested]}
        flat = {"type": "function", "defer_loading": True, "name": "f", "parameters": None}
        events = whole_stream(search("ns.f"))
        assert items(events, declared([{"type": "web_search"}, bare]))[1] == found(
            {"type": "namespace", "name": "ns", "description": "", "tools": [flat]}
        )

    def test_the_first_of_a_name_counts_wherever_it_came_from(self) -> None:
        late = [function("send_mail", description="another"), function("late")]
        events = whole_stream(search("late", "send_mail"))
        assert items(events, declared([MAIL], late))[1] == found(late[1], MAIL)

    def test_nothing_found_and_an_error(self) -> None:
        assert items(whole_stream(search()), declared(TOOLS))[1] == found()
        failed = items(whole_stream(search(error="invalid_tool_input")), declared(TOOLS))[1]
        assert failed == found(status="incomplete")

    def test_each_item_is_added_and_done(self) -> None:
        told = names(stream_bytes(whole_stream(search("send_mail")), declared(TOOLS)))
        assert told[2:-1] == ["output_item.added", "output_item.done"] * 2

    def test_the_signature_of_the_call_is_in_the_reasoning_before_it(self) -> None:
        asking, result = search("send_mail")
        assert isinstance(asking, ServerCall)
        signed = msgspec.structs.replace(asking, signature=SIGNATURE)
        thought, shown, _ = items(whole_stream([signed, result]), declared(TOOLS, carries=True))
        assert thought["encrypted_content"] == seal(SIGNATURE, "1")
        back = request(user("q"), thought, shown, tools=TOOLS).messages[1].parts
        assert back == (signed,)

    def test_a_summary_shows_no_search(self) -> None:
        events = whole_stream([*search("send_mail"), TextDelta("in short")])
        (item,) = whole(events, answer(compacts=True))["output"]
        assert item["type"] == "compaction"

    def test_what_we_show_is_what_we_read(self) -> None:
        shown = items(whole_stream(search("crm.list_orders")), declared(TOOLS))
        got = request(user("q"), *shown, user("on"), tools=TOOLS)
        assert got.found == ("crm.list_orders",)
        assert got.messages[1].parts[1] == search("crm.list_orders")[1]
        assert got.messages[2].parts == (Text(text="on"),)


GIT: Json = {"type": "mcp", "server_label": "git", "server_url": "https://mcp.example/git"}
POST: Json = {**GIT, "server_label": "mail"}
LOCAL: Json = {"type": "function", "name": "read", "parameters": {}}


def test_tools_of_a_server_are_shown_as_that_server_with_these_tools() -> None:
    result = ServerResult(call_id="c", kind="tool_search", tools=("read", "mcp__git__log", "mcp__git__push"))
    sources = [
        msgspec.json.encode([LOCAL, GIT, POST]),
        msgspec.json.encode([{**GIT, "allowed_tools": ["log"]}]),
    ]
    assert output_item(result, sources)["tools"] == [LOCAL, {**GIT, "allowed_tools": ["log", "push"]}]


def test_and_so_they_come_back() -> None:
    servers = [
        RemoteMcpServer(label="git", allowed=ToolFilter(names=("log", "push"))),
        RemoteMcpServer(label="mail"),
    ]
    assert list(found_remotely(servers)) == ["mcp__git__log", "mcp__git__push"]
