"""Rounds with tools of the gateway's own: what the model is asked, what the client gets, when it is enough."""

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


def rounds(*theirs: Tool, choice: ToolChoice = AUTO, **more: Any) -> ToolLoop:
    return ToolLoop(request(*theirs, choice=choice), (LOOK,), **more)


def own(rounds: ToolLoop, identity: str = "o1", name: str = "look", args: bytes = b"{}") -> bool:
    return rounds.accept_call(ToolCall(id=identity, name=name, args=args, signature=SIGNED))


def settle(rounds: ToolLoop, *identities: str, words: str = "found", **more: Any) -> None:
    results = [ToolResult(call_id=one, content=(Text(text=f"{words} {one}"),)) for one in identities]
    rounds.add_results(results, **more)


def one_round(rounds: ToolLoop, identity: str, words: str = "found", args: bytes = b"{}") -> None:
    own(rounds, identity, args=args)
    settle(rounds, identity, words=words)


def declared(request: Request) -> list[str]:
    return [tool.name for tool in request.tools]


class TestNames:
    def test_ours_are_declared_behind_the_clients(self) -> None:
        asked = rounds(READ).next_request((ASKED,))
        assert declared(asked) == ["Read", "look"]
        assert asked.messages == (ASKED,)

    def test_a_name_of_the_clients_stays_the_clients(self) -> None:
        house = rounds(LOOK)
        assert declared(house.request) == ["look", "gateway_look"]
        assert not house.is_gateway_tool("look")
        own(house, name="gateway_look")
        assert house.calls == (ToolCall(id="o1", name="look", signature=SIGNED),)
        assert house.notes == [
            Note(
                "renamed",
                "look",
                "'look' is the client's; the gateway's own tool of this name is 'gateway_look'",
            )
        ]

    def test_ours_is_left_out_where_both_names_are_taken(self) -> None:
        house = rounds(LOOK, Tool(name="gateway_look"))
        assert declared(house.request) == ["look", "gateway_look"]
        assert not house.is_gateway_tool("gateway_look")
        assert [note.kind for note in house.notes] == ["withheld"]

    def test_the_first_of_two_of_ours_counts(self) -> None:
        other = Tool(name="look", description="other")
        assert ToolLoop(request(), (LOOK, other)).request.tools == (LOOK,)


class TestReveal:
    def test_a_deferred_tool_of_ours_is_declared_when_it_is_revealed(self) -> None:
        house = ToolLoop(request(READ), (LOOK, SEEK), deferred=DeferredTools((SEEK,)))
        assert declared(house.request) == ["Read", "look"]
        own(house)
        settle(house, "o1", found_tools=(SEEK,))
        assert declared(house.next_request((ASKED,))) == ["Read", "look", "seek"]
        assert house.is_gateway_tool("seek")

    def test_so_is_a_tool_of_the_clients(self) -> None:
        house = rounds(READ)
        own(house)
        settle(house, "o1", found_tools=(SEEK, READ))
        assert declared(house.request) == ["Read", "look", "seek"]
        assert not house.is_gateway_tool("seek")


class TestChoice:
    @pytest.mark.parametrize(
        ("choice", "theirs", "first", "later"),
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
    def test_a_forced_call_is_the_clients_and_forced_once(
        self, choice: ToolChoice, theirs: tuple[Tool, ...], first: ToolChoice, later: ToolChoice | None
    ) -> None:
        house = rounds(*theirs, choice=choice)
        assert house.next_request(()).tool_choice == first
        one_round(house, "o1")
        assert house.next_request(()).tool_choice == (later or first)

    def test_a_choice_for_the_first_round(self) -> None:
        forced = ToolChoice(mode="any", names=("look",))
        house = ToolLoop(request(READ, choice=ToolChoice(mode="any")), (LOOK,), tool_choice=forced)
        assert house.next_request(()).tool_choice == forced
        one_round(house, "o1")
        assert house.next_request(()).tool_choice == AUTO


class TestRounds:
    def test_the_next_round_knows_the_last(self) -> None:
        house = rounds()
        for event in (Started("m"), ThoughtDelta("hm"), TextDelta("so"), SignatureDelta(SIGNED, "text")):
            house.forward(event)
        own(house, args=b'{"n":1}')
        settle(house, "o1")
        *_, turn, results = house.next_request((ASKED,)).messages
        call = ToolCall(id="o1", name="look", args=b'{"n":1}', signature=SIGNED)
        assert turn == Message(role="model", parts=(Text(text="so", signature=SIGNED), call))
        assert [part.call_id for part in results.parts if isinstance(part, ToolResult)] == ["o1"]
        assert house.completed_rounds == 1
        assert house.calls == ()

    def test_a_second_attempt_forgets_the_first(self) -> None:
        house = rounds()
        house.forward(TextDelta("half"))
        own(house)
        house.begin_round()
        assert house.calls == ()
        one_round(house, "o2")
        assert len(house.next_request((ASKED,)).messages[1].parts) == 1

    def test_what_only_gemini_says_is_part_of_the_turn(self) -> None:
        house = rounds()
        native = Native(json=b'{"executableCode":{}}')
        house.record_event(native)
        one_round(house, "o1")
        assert house.next_request(()).messages[0].parts[0] == native

    def test_a_mixed_step_ends_it(self) -> None:
        house = rounds(READ)
        own(house, "o1")
        call = ToolCall(id="c1", name="Read")
        assert house.forward(call) == (call,)
        settle(house, "o1")
        assert house.is_mixed
        assert house.completed_rounds == 0
        assert house.calls == ()


class TestClient:
    def test_one_opening_and_texts_told_apart(self) -> None:
        house = rounds()
        assert house.forward(Started("m", "r")) == (Started("m", "r"),)
        assert house.forward(TextDelta("so")) == (TextDelta("so"),)
        one_round(house, "o1")
        assert house.forward(Started("m", "r2")) == ()
        assert house.forward(TextDelta("and")) == (TextDelta("\n\n"), TextDelta("and"))
        assert house.forward(TextDelta(" so on\n")) == (TextDelta(" so on\n"),)
        one_round(house, "o2")
        assert house.forward(TextDelta("end")) == (TextDelta("end"),)

    def test_the_opening_of_what_is_shown_first(self) -> None:
        house = rounds()
        assert house.opening_events() == (Started(),)
        assert house.opening_events() == ()
        assert house.forward(Started("m", "r")) == ()

    def test_read_once_written_always(self) -> None:
        house = rounds()
        first = Usage(input_tokens=10, cached_tokens=5, output_tokens=3, thought_tokens=2)
        second = Usage(input_tokens=20, cached_tokens=8, output_tokens=4, thought_tokens=1)
        assert house.forward(first) == (first,)
        own(house)
        house.add_results([ToolResult(call_id="o1")])
        told = Usage(input_tokens=20, cached_tokens=8, output_tokens=7, thought_tokens=3)
        assert house.forward(second) == (told,)

    @pytest.mark.parametrize("reason", ["end", "max_tokens", "tool_calls"])
    def test_an_answer_ends_with_the_clients_calls_or_not(self, reason: StopReason) -> None:
        house = rounds(READ)
        finished = Finished(reason=reason, raw="STOP")
        alone: StopReason = "end" if reason == "tool_calls" else reason
        assert house.forward(finished) == (Finished(reason=alone, raw="STOP"),)
        house.forward(ToolCall(id="c1", name="Read"))
        assert house.forward(finished) == (finished,)


class TestEnough:
    @pytest.mark.parametrize(
        ("limits", "words", "why"),
        [
            (LoopLimits(max_rounds=2), "found", "used 2 times in a row"),
            (LoopLimits(max_output_bytes=3000), "f" * 2000, "have answered"),
            (LoopLimits(max_repeats=2), "found", "the same answer again"),
        ],
    )
    def test_a_limit_ends_it(self, limits: LoopLimits, words: str, why: str) -> None:
        house = rounds(READ, choice=ToolChoice(names=("Read",)), limits=limits)
        for number, identity in enumerate(("o1", "o2")):
            assert "look" in declared(house.next_request(()))
            args = b'{"n": %d}' % (0 if limits.max_repeats == 2 else number)
            own(house, identity, args=args)
            house.add_results([ToolResult(call_id=identity, content=(Text(text=words),))])
        asked = house.next_request(())
        assert declared(asked) == ["Read"]
        assert asked.tool_choice.names == ("Read",)
        last = asked.messages[-1]
        assert last.role == "system"
        assert why in str(last.parts[0])

    def test_another_answer_is_no_circle(self) -> None:
        house = rounds(limits=LoopLimits(max_repeats=2))
        for number in range(5):
            one_round(house, "o1", words=str(number))
        assert declared(house.next_request(())) == ["look"]

    def test_somebody_else_may_say_so(self) -> None:
        house = rounds()
        own(house)
        settle(house, "o1", stop_reason="the time is over")
        assert "the time is over" in str(house.next_request(()).messages[-1])

    def test_a_call_behind_the_end_is_dropped(self) -> None:
        house = rounds()
        own(house)
        settle(house, "o1", stop_reason="the time is over")
        assert not own(house, "o2")
        assert house.calls == ()
        assert house.notes == [Note("dropped", "look", "called again although the time is over")]

    def test_the_tighter_of_two_limits(self) -> None:
        one, other = LoopLimits(max_rounds=1, max_repeats=9), LoopLimits(max_output_bytes=5)
        assert one.stricter(other) == LoopLimits(max_rounds=1, max_repeats=3, max_output_bytes=5)


class TestMemory:
    def test_nothing_hidden_is_nothing_to_remember(self) -> None:
        house = rounds()
        house.forward(TextDelta("hello"))
        assert house.store_entries() == []

    def test_nothing_shown_has_no_key(self) -> None:
        house = rounds()
        one_round(house, "o1")
        house.forward(TextDelta(" "))
        assert house.store_entries() == []

    def test_rounds_and_words(self) -> None:
        house = rounds()
        house.forward(TextDelta("so"))
        one_round(house, "o1")
        house.forward(TextDelta("done"))
        ((key, word),) = house.store_entries()
        assert key == hidden_key(ASKED, "so\n\ndone")
        record = msgspec.json.decode(word, type=HiddenRounds)
        assert record.rounds == house.next_request(()).messages
        assert record.last == Message(role="model", parts=(Text(text="done"),))
        assert record.results == ()

    def test_a_mixed_step(self) -> None:
        house = rounds(READ)
        house.forward(ToolCall(id="c1", name="Read"))
        own(house, "o1")
        settle(house, "o1")
        ((key, word),) = house.store_entries()
        assert key == hidden_key(None, "", "c1")
        record = json.loads(word)
        assert [part["id"] for part in record["last"]["parts"]] == ["c1", "o1"]
        assert [one["call_id"] for one in record["results"]] == ["o1"]
        assert record["rounds"] == []


class TestConsent:
    """A call may wait for the client, who was asked something."""

    ASKED_FOR = (
        ASKED,
        Message(role="model", parts=(Text(text="may I?"), ToolCall(id="o1", name="look", args=b'{"n":1}'))),
    )

    def agreed(self, approval: Any, *more: Message, identity: str = "o1") -> ToolLoop:
        consent = ToolResult(call_id=identity, content=(Text(text="yes"),), approval=approval)
        messages = (*self.ASKED_FOR, Message(role="user", parts=(consent,)), *more)
        return ToolLoop(Request(model="m", messages=messages), (LOOK,))

    def test_a_call_without_a_result_ends_the_answer(self) -> None:
        house = rounds()
        own(house, "o1")
        own(house, "o2")
        house.add_results([None, ToolResult(call_id="o2")])
        assert house.is_mixed
        assert (house.calls, house.completed_rounds) == ((), 0)
        finished = Finished(reason="tool_calls")
        assert house.forward(finished) == (finished,)
        ((key, word),) = house.store_entries()
        assert key == hidden_key(None, "", "o1")
        record = msgspec.json.decode(word, type=HiddenRounds)
        assert [part.id for part in record.last.parts if isinstance(part, ToolCall)] == ["o1", "o2"]
        assert [result.call_id for result in record.results] == ["o2"]

    def test_what_was_agreed_to_is_run_and_answered(self) -> None:
        house = self.agreed("yes")
        assert house.approved_calls == (ToolCall(id="o1", name="look", args=b'{"n":1}'),)
        found = ToolResult(call_id="o1", content=(Text(text="found"),))
        house.set_approved_results([found])
        messages = house.next_request(house.request.messages).messages
        assert messages[:2] == self.ASKED_FOR
        assert messages[2].parts == (found,)

    def test_without_an_answer_the_history_is_as_it_came(self) -> None:
        house = self.agreed("yes")
        assert house.next_request(house.request.messages).messages == house.request.messages

    @pytest.mark.parametrize("approval", ["no", ""])
    def test_what_was_not_agreed_to_is_not_run(self, approval: str) -> None:
        assert self.agreed(approval).approved_calls == ()

    def test_nor_what_is_nobodys_or_long_past(self) -> None:
        assert self.agreed("yes", identity="o9").approved_calls == ()
        later = Message(role="model", parts=(Text(text="well"),))
        assert self.agreed("yes", later).approved_calls == ()
        assert self.agreed("yes", later, ASKED).approved_calls == ()
        assert rounds().approved_calls == ()


def test_servers_that_are_served_are_not_asked_for_again() -> None:
    remotes = (RemoteMcpServer(label="a"), RemoteMcpServer(label="b"))
    asked = Request(model="m", messages=(ASKED,), remotes=remotes)
    assert ToolLoop(asked, (LOOK,), mcp_labels={"a"}).request.remotes == remotes[1:]
