"""Tools of the client's that wait until they are found: what is declared when, and in which order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects import anthropic
from dragoman.ir import (
    Message,
    Request,
    ServerCall,
    ServerResult,
    Started,
    Text,
    TextDelta,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from dragoman.translation.exchange import Exchange
from dragoman.translation.repair import HiddenRounds, hidden_places, search_tool_result
from dragoman.translation.tool_loop import ToolLoop
from dragoman.translation.tool_search import DeferredTools, plan_search
from tests.unit.dialects.anthropic.builders import body, user
from tests.unit.translation.test_exchange import MODEL, USAGE, call, chunk, sse

Json = dict[str, Any]

ASKED = Message(role="user", parts=(Text(text="q"),))
READ, SEEK, LOOK = (Tool(name=name) for name in ("Read", "seek", "look"))
A, B, C = (Tool(name=name, schema=b'{"type":"object","required":["n"]}') for name in "abc")


def rounds(
    *messages: Message,
    choice: ToolChoice | None = None,
    own: tuple[Tool, ...] = (),
    found: tuple[str, ...] = (),
    **more: Any,
) -> ToolLoop:
    request = Request(
        model="m",
        messages=messages or (ASKED,),
        tools=(A, READ, B, C),
        tool_choice=choice or ToolChoice(),
    )
    return ToolLoop(
        request, own, **{"search_tools": (SEEK,), "deferred": DeferredTools((A, B, C), found), **more}
    )


def declared(house: ToolLoop) -> list[str]:
    return [tool.name for tool in house.next_request(house.request.messages).tools]


def search(house: ToolLoop, *found: Tool, identity: str = "s1", **more: Any) -> None:
    house.accept_call(ToolCall(id=identity, name="seek"))
    house.add_results([ToolResult(call_id=identity)], found_tools=found, **more)


def called(*names: str, text: str = "") -> Message:
    parts = (Text(text=text),) if text else ()
    return Message(role="model", parts=(*parts, *(ToolCall(id=f"c-{name}", name=name) for name in names)))


class TestDeclared:
    def test_only_what_is_not_deferred_and_the_search(self) -> None:
        assert declared(rounds()) == ["Read", "seek"]

    def test_tools_of_our_own_stand_behind_the_search(self) -> None:
        assert declared(rounds(own=(LOOK,))) == ["Read", "seek", "look"]

    def test_what_is_found_is_appended_in_that_order(self) -> None:
        house = rounds()
        search(house, C)
        assert declared(house) == ["Read", "seek", "c"]
        search(house, A, C, identity="s2")
        assert declared(house) == ["Read", "seek", "c", "a"]

    def test_what_the_dialect_found_comes_first_then_the_conversation_then_the_choice(self) -> None:
        history = (ASKED, called("c"), Message(role="user", parts=(ToolResult(call_id="c-c"),)))
        forced = ToolChoice(mode="any", names=("a",))
        assert declared(rounds(*history, found=("b", "gone"), choice=forced)) == [
            "Read",
            "seek",
            "b",
            "c",
            "a",
        ]
        assert declared(rounds(*history, found=("b",))) == ["Read", "seek", "b", "c"]

    def test_what_was_found_behind_the_clients_back_is_remembered(self) -> None:
        house = rounds()
        search(house, C, B)
        house.forward(TextDelta("done"))
        ((key, word),) = house.store_entries()
        history = (ASKED, Message(role="model", parts=(Text(text="done"),)), ASKED)
        again = rounds(*history)
        assert declared(again) == ["Read", "seek"]
        assert key in again.places
        again.set_stored_rounds({key: word})
        assert declared(again) == ["Read", "seek", "c", "b"]

    def test_the_order_of_a_turn_is_its_order_for_ever(self) -> None:
        """The tool that is called first is not the one that was found first."""
        house = rounds()
        search(house, C, B)
        before = declared(house)
        house.forward(ToolCall(id="c-b", name="b"))
        ((key, word),) = house.store_entries()
        again = rounds(ASKED, called("b"), Message(role="user", parts=(ToolResult(call_id="c-b"),)))
        again.set_stored_rounds({key: word})
        assert declared(again) == before == ["Read", "seek", "c", "b"]

    def test_without_deferred_tools_the_history_reveals_nothing(self) -> None:
        house = rounds(ASKED, called("a"), search_tools=(), deferred=None)
        house.set_stored_rounds(
            dict.fromkeys(
                hidden_places((ASKED, called("a"))), HiddenRounds(last=ASKED, revealed=("z",)).encode()
            )
        )
        assert declared(house) == ["a", "Read", "b", "c"]

    def test_a_tool_of_ours_is_not_taken_for_the_clients(self) -> None:
        ours = Tool(name="a", description="ours")
        house = rounds(own=(ours,))
        assert "gateway_a" in declared(house)
        search(house, A)
        assert house.request.tools[-1] is A

    def test_a_search_for_ours_alone_is_none_that_a_client_can_force(self) -> None:
        house = rounds(choice=ToolChoice(mode="any"), own=(LOOK,), deferred=DeferredTools((LOOK,)))
        assert declared(house) == ["a", "Read", "b", "c", "seek"]
        assert house.next_request((ASKED,)).tool_choice.names == ("a", "Read", "b", "c")

    def test_when_it_is_enough_the_search_goes_and_what_was_found_stays(self) -> None:
        house = rounds()
        search(house, A, stop_reason="the time is over")
        assert declared(house) == ["Read", "a"]


class TestChoice:
    def test_a_forced_call_may_have_to_be_found_first(self) -> None:
        house = rounds(choice=ToolChoice(mode="any"), own=(LOOK,))
        forced = house.next_request((ASKED,)).tool_choice
        assert (forced.mode, forced.names) == ("any", ("Read", "seek"))
        search(house, B)
        forced = house.next_request((ASKED,)).tool_choice
        assert (forced.mode, forced.names) == ("any", ("Read", "b", "seek"))

    def test_where_the_tools_are_named_there_is_nothing_to_find(self) -> None:
        house = rounds(choice=ToolChoice(mode="any", names=("b",)))
        assert house.next_request((ASKED,)).tool_choice.names == ("b",)
        house = rounds(choice=ToolChoice(names=("b",)), own=(LOOK,))
        assert house.next_request((ASKED,)).tool_choice.names == ("b", "look")

    def test_a_search_that_is_forced_is_forced_once(self) -> None:
        forced = ToolChoice(mode="any", names=("seek",))
        house = ToolLoop(
            rounds().request, (), search_tools=(SEEK,), deferred=DeferredTools((A,)), tool_choice=forced
        )
        # The client's request now has a tool of that name: ours is another.
        assert house.next_request((ASKED,)).tool_choice.names == ("gateway_seek",)
        house.accept_call(ToolCall(id="s1", name="gateway_seek"))
        assert house.calls == (ToolCall(id="s1", name="seek", args=b"{}"),)
        house.add_results([ToolResult(call_id="s1")])
        assert house.next_request((ASKED,)).tool_choice == ToolChoice()


class TestOpening:
    """What is shown behind the first words opens the answer no second time."""

    def test_the_model_has_begun(self) -> None:
        house = rounds()
        assert house.forward(Started("m")) == (Started("m"),)
        assert house.opening_events() == ()

    def test_an_attempt_that_failed_has_begun_nothing(self) -> None:
        house = rounds()
        house.forward(Started("m"))
        house.begin_round()
        assert house.opening_events() == (Started(),)
        assert house.forward(Started("m")) == ()


class TestGuesses:
    """A model that knows a name from the list may call it before it has seen the tool."""

    def test_a_right_one_is_the_clients(self) -> None:
        assert not rounds().handles("a", b'{"n":1}')
        assert rounds().undeclared_tool("a") == A

    def test_a_wrong_one_is_shown_the_tool(self) -> None:
        house = rounds()
        assert house.handles("a", b"{}")
        house.accept_call(ToolCall(id="g1", name="a"))
        assert house.calls == (ToolCall(id="g1", name="a"),)
        house.add_results([ToolResult(call_id="g1")], found_tools=(A,))
        assert declared(house) == ["Read", "seek", "a"]
        assert not house.handles("a", b"{}")

    @pytest.mark.parametrize("name", ["Read", "nobody"])
    def test_others_are_the_clients_whatever_they_say(self, name: str) -> None:
        assert rounds().undeclared_tool(name) is None
        assert not rounds().handles(name, b"{}")


SHOWN = (
    ServerCall(id="s1", kind="tool_search", name="tool_search_tool_bm25", args=b'{"query":"w"}'),
    ServerResult(call_id="s1", kind="tool_search", tools=("get_weather",)),
)
TOOLS: list[Json] = [
    {"type": "tool_search_tool_bm25", "name": "tool_search_tool_bm25"},
    {
        "name": "get_weather",
        "defer_loading": True,
        "input_schema": {"type": "object", "properties": {"days": {"type": "integer"}}, "required": ["days"]},
    },
]


def offered(**fields: Any) -> Exchange:
    exchange = Exchange(anthropic, new_id=lambda: "0" * 16)
    exchange.decode(body(user("q"), tools=TOOLS, **fields))
    plan = plan_search(exchange.request, 0)
    assert plan is not None
    finders = [search.tool for search in plan.searches]
    deferred = DeferredTools(plan.deferred, plan.found)
    exchange.add_tool_loop(ToolLoop(exchange.request, (), search_tools=finders, deferred=deferred))
    exchange.encode(MODEL)
    return exchange


class TestExchange:
    def test_what_waits_is_not_counted(self) -> None:
        exchange = Exchange(anthropic, new_id=lambda: "0" * 16)
        exchange.decode(body(user("q"), tools=TOOLS))
        assert b"get_weather" in exchange.encode_count(MODEL)
        counted = json.loads(offered().encode_count(MODEL))["generateContentRequest"]["tools"]
        assert [one["name"] for one in counted[0]["functionDeclarations"]] == ["tool_search_tool_bm25"]

    def test_the_client_sees_the_search_and_no_gap_in_the_text(self) -> None:
        exchange = offered()
        asks = call("tool_search_tool_bm25", "c2ln", query="w")
        exchange.receive(sse(chunk({"text": "so"}), chunk(asks, finish="STOP", usageMetadata=USAGE)))
        exchange.end()
        (own,) = exchange.gateway_calls
        exchange.send_events([SHOWN[0], SHOWN[1]])
        exchange.add_results([search_tool_result(SHOWN[1], own.name)])
        exchange.encode(MODEL)
        exchange.receive(sse(chunk({"text": "done"}, finish="STOP", usageMetadata=USAGE)))
        content = json.loads(exchange.finish())["content"]
        kinds = [block["type"] for block in content]
        assert kinds == ["text", "server_tool_use", "tool_search_tool_result", "text"]
        assert [content[0]["text"], content[3]["text"]] == ["so", "done"]

    def test_a_tool_that_was_called_unseen_is_checked_as_all_are(self) -> None:
        exchange = offered()
        exchange.receive(sse(chunk(call("get_weather", days="3"), finish="STOP")))
        exchange.end()
        assert exchange.gateway_calls == ()
        (used,) = json.loads(exchange.finish())["content"]
        assert (used["name"], used["input"]) == ("get_weather", {"days": 3})

    def test_what_the_store_knows_is_declared_and_checked(self) -> None:
        exchange = offered()
        assert exchange.tool_loop is not None
        known = HiddenRounds(last=ASKED, revealed=("get_weather",)).encode()
        exchange.tool_loop.places = {"k": (0, 1)}
        exchange.tool_loop.set_stored_rounds({"k": known})
        assert b"get_weather" in exchange.encode(MODEL)
        exchange.receive(sse(chunk(call("get_weather", days="3"), finish="STOP")))
        (used,) = json.loads(exchange.finish())["content"]
        assert used["input"] == {"days": 3}

    def test_a_wrong_guess_never_reaches_the_client(self) -> None:
        exchange = offered()
        exchange.receive(sse(chunk(call("get_weather", city="Paris"), finish="STOP")))
        exchange.end()
        (guess,) = exchange.gateway_calls
        assert guess.name == "get_weather"
