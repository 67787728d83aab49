"""The tool loop: the requests of its rounds, the events for the client, and its limits."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from dragoman.ir import (
    Finished,
    Message,
    Native,
    RemoteMcpServer,
    Request,
    Signature,
    SignatureDelta,
    Started,
    StopReason,
    Text,
    TextDelta,
    ThoughtDelta,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Usage,
)
from dragoman.notes import Note
from dragoman.translation.repair import HiddenRounds, hidden_key
from dragoman.translation.tool_loop import LoopLimits, ToolLoop
from dragoman.translation.tool_search import DeferredTools

ASKED = Message(role="user", parts=(Text(text="q"),))
LOOK, READ, SEEK = (Tool(name=name) for name in ("look", "Read", "seek"))
SIGNED = Signature("c2ln", "gemini-g3")
AUTO = ToolChoice()


def request(*tools: Tool, choice: ToolChoice = AUTO) -> Request:
    return Request(model="m", messages=(ASKED,), tools=tools, tool_choice=choice)


def new_tool_loop(*client_tools: Tool, choice: ToolChoice = AUTO, **more: Any) -> ToolLoop:
    return ToolLoop(request(*client_tools, choice=choice), (LOOK,), **more)


def accept(tool_loop: ToolLoop, identity: str = "o1", name: str = "look", args: bytes = b"{}") -> bool:
    return tool_loop.accept_call(ToolCall(id=identity, name=name, args=args, signature=SIGNED))


def add_results(tool_loop: ToolLoop, *identities: str, words: str = "found", **more: Any) -> None:
    results = [ToolResult(call_id=one, content=(Text(text=f"{words} {one}"),)) for one in identities]
    tool_loop.add_results(results, **more)


def run_round(tool_loop: ToolLoop, identity: str, words: str = "found", args: bytes = b"{}") -> None:
    accept(tool_loop, identity, args=args)
    add_results(tool_loop, identity, words=words)


def declared(request: Request) -> list[str]:
    return [tool.name for tool in request.tools]


class TestNames:
    def test_gateway_tools_are_declared_after_the_clients(self) -> None:
        asked = new_tool_loop(READ).next_request((ASKED,))
        assert declared(asked) == ["Read", "look"]
        assert asked.messages == (ASKED,)

    def test_a_gateway_tool_with_a_name_of_the_client_is_renamed(self) -> None:
        tool_loop = new_tool_loop(LOOK)
        assert declared(tool_loop.request) == ["look", "gateway_look"]
        assert not tool_loop.is_gateway_tool("look")
        accept(tool_loop, name="gateway_look")
        assert tool_loop.calls == (ToolCall(id="o1", name="look", signature=SIGNED),)
        assert tool_loop.notes == [
            Note(
                "renamed",
                "look",
                "'look' is the client's; the gateway's own tool of this name is 'gateway_look'",
            )
        ]

    def test_a_gateway_tool_is_left_out_if_both_names_are_taken(self) -> None:
        tool_loop = new_tool_loop(LOOK, Tool(name="gateway_look"))
        assert declared(tool_loop.request) == ["look", "gateway_look"]
        assert not tool_loop.is_gateway_tool("gateway_look")
        assert [note.kind for note in tool_loop.notes] == ["withheld"]

    def test_of_two_gateway_tools_with_one_name_the_first_counts(self) -> None:
        other = Tool(name="look", description="other")
        assert ToolLoop(request(), (LOOK, other)).request.tools == (LOOK,)


class TestFoundTools:
    def test_a_deferred_gateway_tool_is_declared_once_found(self) -> None:
        tool_loop = ToolLoop(request(READ), (LOOK, SEEK), deferred=DeferredTools((SEEK,)))
        assert declared(tool_loop.request) == ["Read", "look"]
        accept(tool_loop)
        add_results(tool_loop, "o1", found_tools=(SEEK,))
        assert declared(tool_loop.next_request((ASKED,))) == ["Read", "look", "seek"]
        assert tool_loop.is_gateway_tool("seek")

    def test_a_deferred_client_tool_is_declared_once_found(self) -> None:
        tool_loop = new_tool_loop(READ)
        accept(tool_loop)
        add_results(tool_loop, "o1", found_tools=(SEEK, READ))
        assert declared(tool_loop.request) == ["Read", "look", "seek"]
        assert not tool_loop.is_gateway_tool("seek")


class TestChoice:
    @pytest.mark.parametrize(
        ("choice", "client_tools", "first", "later"),
        [
            (AUTO, (READ,), AUTO, AUTO),
            (ToolChoice(mode="none"), (READ,), ToolChoice(mode="none"), ToolChoice(mode="none")),
            (
                ToolChoice(mode="any", parallel=False),
                (READ,),
                ToolChoice(mode="any", names=("Read",), parallel=False),
                ToolChoice(parallel=False),
            ),
            (
                ToolChoice(mode="any", names=("Read",)),
                (READ, SEEK),
                ToolChoice(mode="any", names=("Read",)),
                AUTO,
            ),
            (ToolChoice(mode="any"), (), AUTO, AUTO),
            (ToolChoice(names=("Read",)), (READ, SEEK), ToolChoice(names=("Read", "look")), None),
        ],
    )
    def test_a_forced_call_is_of_a_client_tool_and_forced_once(
        self, choice: ToolChoice, client_tools: tuple[Tool, ...], first: ToolChoice, later: ToolChoice | None
    ) -> None:
        tool_loop = new_tool_loop(*client_tools, choice=choice)
        assert tool_loop.next_request(()).tool_choice == first
        run_round(tool_loop, "o1")
        assert tool_loop.next_request(()).tool_choice == (later or first)

    def test_a_choice_for_the_first_round(self) -> None:
        forced = ToolChoice(mode="any", names=("look",))
        tool_loop = ToolLoop(request(READ, choice=ToolChoice(mode="any")), (LOOK,), tool_choice=forced)
        assert tool_loop.next_request(()).tool_choice == forced
        run_round(tool_loop, "o1")
        assert tool_loop.next_request(()).tool_choice == AUTO


class TestRounds:
    def test_the_next_request_contains_the_completed_round(self) -> None:
        tool_loop = new_tool_loop()
        for event in (Started("m"), ThoughtDelta("hm"), TextDelta("so"), SignatureDelta(SIGNED, "text")):
            tool_loop.forward(event)
        accept(tool_loop, args=b'{"n":1}')
        add_results(tool_loop, "o1")
        *_, turn, results = tool_loop.next_request((ASKED,)).messages
        call = ToolCall(id="o1", name="look", args=b'{"n":1}', signature=SIGNED)
        assert turn == Message(role="model", parts=(Text(text="so", signature=SIGNED), call))
        assert [part.call_id for part in results.parts if isinstance(part, ToolResult)] == ["o1"]
        assert tool_loop.completed_rounds == 1
        assert tool_loop.calls == ()

    def test_a_second_attempt_discards_the_first(self) -> None:
        tool_loop = new_tool_loop()
        tool_loop.forward(TextDelta("half"))
        accept(tool_loop)
        tool_loop.begin_round()
        assert tool_loop.calls == ()
        run_round(tool_loop, "o2")
        assert len(tool_loop.next_request((ASKED,)).messages[1].parts) == 1

    def test_native_content_is_part_of_the_turn(self) -> None:
        tool_loop = new_tool_loop()
        native = Native(json=b'{"executableCode":{}}')
        tool_loop.record_event(native)
        run_round(tool_loop, "o1")
        assert tool_loop.next_request(()).messages[0].parts[0] == native

    def test_a_mixed_round_is_the_last(self) -> None:
        tool_loop = new_tool_loop(READ)
        accept(tool_loop, "o1")
        call = ToolCall(id="c1", name="Read")
        assert tool_loop.forward(call) == (call,)
        add_results(tool_loop, "o1")
        assert tool_loop.is_mixed
        assert tool_loop.completed_rounds == 0
        assert tool_loop.calls == ()


class TestClient:
    def test_one_start_and_a_blank_line_between_the_texts_of_rounds(self) -> None:
        tool_loop = new_tool_loop()
        assert tool_loop.forward(Started("m", "r")) == (Started("m", "r"),)
        assert tool_loop.forward(TextDelta("so")) == (TextDelta("so"),)
        run_round(tool_loop, "o1")
        assert tool_loop.forward(Started("m", "r2")) == ()
        assert tool_loop.forward(TextDelta("and")) == (TextDelta("\n\n"), TextDelta("and"))
        assert tool_loop.forward(TextDelta(" so on\n")) == (TextDelta(" so on\n"),)
        run_round(tool_loop, "o2")
        assert tool_loop.forward(TextDelta("end")) == (TextDelta("end"),)

    def test_events_of_the_gateway_are_preceded_by_one_start(self) -> None:
        tool_loop = new_tool_loop()
        assert tool_loop.opening_events() == (Started(),)
        assert tool_loop.opening_events() == ()
        assert tool_loop.forward(Started("m", "r")) == ()

    def test_usage_adds_up_the_output_but_not_the_input(self) -> None:
        tool_loop = new_tool_loop()
        first = Usage(input_tokens=10, cached_tokens=5, output_tokens=3, thought_tokens=2)
        second = Usage(input_tokens=20, cached_tokens=8, output_tokens=4, thought_tokens=1)
        assert tool_loop.forward(first) == (first,)
        accept(tool_loop)
        tool_loop.add_results([ToolResult(call_id="o1")])
        told = Usage(input_tokens=20, cached_tokens=8, output_tokens=7, thought_tokens=3)
        assert tool_loop.forward(second) == (told,)

    @pytest.mark.parametrize("reason", ["end", "max_tokens", "tool_calls"])
    def test_the_finish_reason_depends_on_calls_of_the_client(self, reason: StopReason) -> None:
        tool_loop = new_tool_loop(READ)
        finished = Finished(reason=reason, raw="STOP")
        alone: StopReason = "end" if reason == "tool_calls" else reason
        assert tool_loop.forward(finished) == (Finished(reason=alone, raw="STOP"),)
        tool_loop.forward(ToolCall(id="c1", name="Read"))
        assert tool_loop.forward(finished) == (finished,)


class TestStop:
    @pytest.mark.parametrize(
        ("limits", "words", "why"),
        [
            (LoopLimits(max_rounds=2), "found", "used 2 times in a row"),
            (LoopLimits(max_output_bytes=3000), "f" * 2000, "have answered"),
            (LoopLimits(max_repeats=2), "found", "the same answer again"),
        ],
    )
    def test_a_limit_ends_the_loop(self, limits: LoopLimits, words: str, why: str) -> None:
        tool_loop = new_tool_loop(READ, choice=ToolChoice(names=("Read",)), limits=limits)
        for number, identity in enumerate(("o1", "o2")):
            assert "look" in declared(tool_loop.next_request(()))
            args = b'{"n": %d}' % (0 if limits.max_repeats == 2 else number)
            accept(tool_loop, identity, args=args)
            tool_loop.add_results([ToolResult(call_id=identity, content=(Text(text=words),))])
        asked = tool_loop.next_request(())
        assert declared(asked) == ["Read"]
        assert asked.tool_choice.names == ("Read",)
        last = asked.messages[-1]
        assert last.role == "system"
        assert why in str(last.parts[0])

    def test_different_results_are_no_repetition(self) -> None:
        tool_loop = new_tool_loop(limits=LoopLimits(max_repeats=2))
        for number in range(5):
            run_round(tool_loop, "o1", words=str(number))
        assert declared(tool_loop.next_request(())) == ["look"]

    def test_the_caller_may_give_the_reason_to_stop(self) -> None:
        tool_loop = new_tool_loop()
        accept(tool_loop)
        add_results(tool_loop, "o1", stop_reason="the time is over")
        assert "the time is over" in str(tool_loop.next_request(()).messages[-1])

    def test_a_call_after_the_stop_is_dropped(self) -> None:
        tool_loop = new_tool_loop()
        accept(tool_loop)
        add_results(tool_loop, "o1", stop_reason="the time is over")
        assert not accept(tool_loop, "o2")
        assert tool_loop.calls == ()
        assert tool_loop.notes == [Note("dropped", "look", "called again although the time is over")]

    def test_the_stricter_of_two_limits(self) -> None:
        one, other = LoopLimits(max_rounds=1, max_repeats=9), LoopLimits(max_output_bytes=5)
        assert one.stricter(other) == LoopLimits(max_rounds=1, max_repeats=3, max_output_bytes=5)


class TestStoreEntries:
    def test_without_hidden_rounds_nothing_is_stored(self) -> None:
        tool_loop = new_tool_loop()
        tool_loop.forward(TextDelta("hello"))
        assert tool_loop.store_entries() == []

    def test_an_answer_that_showed_nothing_has_no_key(self) -> None:
        tool_loop = new_tool_loop()
        run_round(tool_loop, "o1")
        tool_loop.forward(TextDelta(" "))
        assert tool_loop.store_entries() == []

    def test_completed_rounds_are_stored_under_a_hash_of_the_text(self) -> None:
        tool_loop = new_tool_loop()
        tool_loop.forward(TextDelta("so"))
        run_round(tool_loop, "o1")
        tool_loop.forward(TextDelta("done"))
        ((key, word),) = tool_loop.store_entries()
        assert key == hidden_key(ASKED, "so\n\ndone")
        record = msgspec.json.decode(word, type=HiddenRounds)
        assert record.rounds == tool_loop.next_request(()).messages
        assert record.last == Message(role="model", parts=(Text(text="done"),))
        assert record.results == ()

    def test_a_mixed_round_is_stored_under_the_clients_call(self) -> None:
        tool_loop = new_tool_loop(READ)
        tool_loop.forward(ToolCall(id="c1", name="Read"))
        accept(tool_loop, "o1")
        add_results(tool_loop, "o1")
        ((key, word),) = tool_loop.store_entries()
        assert key == hidden_key(None, "", "c1")
        record = json.loads(word)
        assert [part["id"] for part in record["last"]["parts"]] == ["c1", "o1"]
        assert [one["call_id"] for one in record["results"]] == ["o1"]
        assert record["rounds"] == []


class TestApproval:
    """A call may wait for the approval of the user."""

    ASKED_FOR = (
        ASKED,
        Message(role="model", parts=(Text(text="may I?"), ToolCall(id="o1", name="look", args=b'{"n":1}'))),
    )

    def approved(self, approval: Any, *more: Message, identity: str = "o1") -> ToolLoop:
        consent = ToolResult(call_id=identity, content=(Text(text="yes"),), approval=approval)
        messages = (*self.ASKED_FOR, Message(role="user", parts=(consent,)), *more)
        return ToolLoop(Request(model="m", messages=messages), (LOOK,))

    def test_a_call_without_a_result_ends_the_answer(self) -> None:
        tool_loop = new_tool_loop()
        accept(tool_loop, "o1")
        accept(tool_loop, "o2")
        tool_loop.add_results([None, ToolResult(call_id="o2")])
        assert tool_loop.is_mixed
        assert (tool_loop.calls, tool_loop.completed_rounds) == ((), 0)
        finished = Finished(reason="tool_calls")
        assert tool_loop.forward(finished) == (finished,)
        ((key, word),) = tool_loop.store_entries()
        assert key == hidden_key(None, "", "o1")
        record = msgspec.json.decode(word, type=HiddenRounds)
        assert [part.id for part in record.last.parts if isinstance(part, ToolCall)] == ["o1", "o2"]
        assert [result.call_id for result in record.results] == ["o2"]

    def test_an_approved_call_is_run_and_its_result_replaces_the_approval(self) -> None:
        tool_loop = self.approved("yes")
        assert tool_loop.approved_calls == (ToolCall(id="o1", name="look", args=b'{"n":1}'),)
        found = ToolResult(call_id="o1", content=(Text(text="found"),))
        tool_loop.set_approved_results([found])
        messages = tool_loop.next_request(tool_loop.request.messages).messages
        assert messages[:2] == self.ASKED_FOR
        assert messages[2].parts == (found,)

    def test_without_a_result_the_history_is_unchanged(self) -> None:
        tool_loop = self.approved("yes")
        assert tool_loop.next_request(tool_loop.request.messages).messages == tool_loop.request.messages

    @pytest.mark.parametrize("approval", ["no", ""])
    def test_a_call_that_was_not_approved_is_not_run(self, approval: str) -> None:
        assert self.approved(approval).approved_calls == ()

    def test_only_gateway_calls_of_the_last_answer_are_run(self) -> None:
        assert self.approved("yes", identity="o9").approved_calls == ()
        later = Message(role="model", parts=(Text(text="well"),))
        assert self.approved("yes", later).approved_calls == ()
        assert self.approved("yes", later, ASKED).approved_calls == ()
        assert new_tool_loop().approved_calls == ()


def test_mcp_servers_that_the_gateway_runs_are_removed_from_the_request() -> None:
    remotes = (RemoteMcpServer(label="a"), RemoteMcpServer(label="b"))
    asked = Request(model="m", messages=(ASKED,), remotes=remotes)
    assert ToolLoop(asked, (LOOK,), mcp_labels={"a"}).request.remotes == remotes[1:]
