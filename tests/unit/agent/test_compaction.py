"""Long histories become short without losing a signature, a result or the task."""

from __future__ import annotations

import pytest

from dragoman import ir
from dragoman.agent.compaction import (
    HEADING,
    INSTRUCTIONS,
    TASK_HEADING,
    compact_history,
    find_cut,
    summary_request,
)
from dragoman.agent.events import (
    CompactionRequested,
    InterruptRequested,
    SaveHistory,
    SendRequest,
    ShowNotice,
    TurnEnd,
    UserMessage,
)
from dragoman.ir import Message, Text, ToolCall, ToolResult
from dragoman.translation.repair import repair
from dragoman.translation.token_estimate import estimate_tokens
from tests.unit.agent.builders import (
    CONTEXT,
    TEMPLATE,
    answer,
    asked,
    call,
    fail,
    finish,
    hear,
    machine,
    model,
    result,
    results,
    user,
)

LONG = "word " * 4_000  # about 5,000 tokens


def exchange(number: int, text: str = "fine") -> tuple[Message, ...]:
    return user(f"question {number}"), model(Text(text=text))


def step(number: int, text: str = LONG) -> tuple[Message, ...]:
    return model(call(f"c{number}")), results(result(f"c{number}", text))


def test_the_last_two_turns_stay_whole() -> None:
    history = (*exchange(1), *exchange(2), *exchange(3))
    cut = find_cut(history, CONTEXT)
    assert cut is not None
    assert cut.old == history[:2]
    assert cut.kept == history[2:]


def test_fewer_turns_are_kept_when_they_are_long() -> None:
    history = (*exchange(1), *exchange(2, LONG * 10), *exchange(3))
    cut = find_cut(history, CONTEXT)
    assert cut is not None
    assert cut.kept == history[4:]


def test_a_turn_that_is_too_long_itself_is_cut_between_its_steps() -> None:
    steps = tuple(message for number in range(20) for message in step(number))
    cut = find_cut((user("the task"), *steps), CONTEXT)
    assert cut is not None
    assert isinstance(cut.kept[0].parts[0], ToolCall)
    assert 0 < len(cut.kept) < 20
    history = compact_history(cut, " all about it ")
    words = history[0].parts[0]
    assert isinstance(words, Text)
    assert words.text == f"{HEADING}\n\nall about it\n\n{TASK_HEADING}\n\nthe task"
    assert repair(history, ends_with_user=True)[1] == ()
    signed = [part for message in history for part in message.parts if isinstance(part, ToolCall)]
    assert signed
    assert all(one.signature is not None for one in signed)


def test_even_the_last_step_alone_may_be_too_long() -> None:
    history = (user("the task"), *step(1), *step(2, LONG * 20))
    cut = find_cut(history, CONTEXT)
    assert cut is not None
    assert cut.kept == history[3:]


def test_the_task_survives_a_second_summary_once() -> None:
    first = find_cut((user("the task"), *step(1), *step(2, LONG * 20)), CONTEXT)
    assert first is not None
    history = (*compact_history(first, "first"), *step(3), *step(4, LONG * 20))
    second = find_cut(history, CONTEXT)
    assert second is not None
    text = str(compact_history(second, "second")[0].parts)
    assert text.count("the task") == 1
    assert "first" not in text


def test_the_users_words_are_not_repeated_when_they_are_kept() -> None:
    cut = find_cut((*exchange(1), *exchange(2), *exchange(3)), CONTEXT)
    assert cut is not None
    assert TASK_HEADING not in str(compact_history(cut, "x")[0].parts)


@pytest.mark.parametrize("history", [(), (user(),), exchange(1), (model(Text(text="odd")),)])
def test_what_is_short_stays(history: tuple[Message, ...]) -> None:
    assert find_cut(history, CONTEXT) is None


@pytest.mark.parametrize("context", range(3_000, 6_000, 250))
def test_the_request_for_a_summary_fits_and_has_no_result_without_its_call(context: int) -> None:
    old = (user("the task"), *(message for number in range(100) for message in step(number)))
    request = summary_request(TEMPLATE, old, context)
    assert estimate_tokens(request) < context
    assert request.messages[-1].parts == (Text(text=INSTRUCTIONS),)
    assert request.tool_choice.mode == "none"
    assert not isinstance(request.messages[0].parts[0], ToolResult)
    noted = repair(request.messages, ends_with_user=True)[1]
    assert [note.why for note in noted] == ["a conversation must begin with the user; a turn was added"]


def test_a_result_goes_with_its_call_when_the_oldest_is_left_out() -> None:
    steps = ((model(Text(text=LONG), call(f"c{n}")), results(result(f"c{n}"))) for n in range(9))
    old = (user("the task"), *(message for step in steps for message in step))
    request = summary_request(TEMPLATE, old, 20_000)
    assert len(request.messages) < len(old)
    assert request.messages[0].role == "model"


def test_without_tools_there_is_no_choice_to_forbid() -> None:
    request = summary_request(ir.Request(model="m", messages=()), exchange(1), CONTEXT)
    assert request.tool_choice.mode == "auto"


def test_results_are_shortened_for_the_summary_only() -> None:
    table = ToolResult(call_id="c1", response=b'{"rows":[%b1]}' % (b"1," * 3_000))
    old = (user(), model(call()), results(table), model(call("c2")), results(result("c2", "short")))
    request = summary_request(TEMPLATE, old, CONTEXT)
    long_one, short_one = (request.messages[index].parts[0] for index in (2, 4))
    assert isinstance(long_one, ToolResult)
    assert isinstance(short_one, ToolResult)
    assert long_one.response == b""
    assert "more characters" in str(long_one.content)
    assert short_one.content == (Text(text="short"),)


# In the machine


def test_a_full_window_is_summarised_before_the_next_request() -> None:
    agent = machine(*exchange(1, LONG), *exchange(2), *exchange(3), context=5_000)
    commands = agent.handle(UserMessage("go on"))
    summary = asked(commands)
    assert summary.purpose == "summary"
    assert isinstance(commands[1], ShowNotice)
    commands = hear(agent, summary, answer("it was long"))
    following = asked(commands)
    assert following.purpose == "answer"
    saved = next(command for command in commands if isinstance(command, SaveHistory))
    assert saved.replace
    assert saved.messages == following.request.messages
    assert str(following.request.messages[0].parts[0]).count("it was long") == 1
    assert following.request.messages[-1] == user("go on")
    assert agent.steps == 1


def test_what_the_upstream_counted_is_believed() -> None:
    agent = machine(*exchange(1), *exchange(2), context=10_000)
    big = ir.Usage(input_tokens=9_000, output_tokens=10)
    hear(agent, asked(agent.handle(UserMessage("one"))), answer("1", usage=big))
    assert asked(agent.handle(UserMessage("two"))).purpose == "summary"


def test_an_overflow_is_answered_with_a_summary_and_only_once() -> None:
    agent = machine(*exchange(1), *exchange(2))
    ask = asked(agent.handle(UserMessage("go on")))
    summary = asked(hear(agent, ask, fail("overflow")))
    assert summary.purpose == "summary"
    again = asked(hear(agent, summary, answer("short")))
    assert agent.steps == 1
    assert hear(agent, again, fail("overflow")) == [TurnEnd("failed", "it broke")]


def test_an_overflow_of_a_single_message_is_a_failure() -> None:
    agent = machine()
    ask = asked(agent.handle(UserMessage("too long")))
    assert hear(agent, ask, fail("overflow")) == [TurnEnd("failed", "it broke")]


def test_a_window_that_cannot_be_made_smaller_is_tried_as_it_is() -> None:
    agent = machine(context=100)
    assert asked(agent.handle(UserMessage(LONG))).purpose == "answer"


@pytest.mark.parametrize("events", [fail(), answer(), answer("  ")])
def test_without_a_summary_the_turn_goes_on_with_the_whole_history(events: list[ir.Event]) -> None:
    history = (*exchange(1, LONG), *exchange(2), *exchange(3))
    agent = machine(*history, context=5_000)
    summary = asked(agent.handle(UserMessage("go on")))
    following = asked(hear(agent, summary, events))
    assert following.purpose == "answer"
    assert following.request.messages == (*history, user("go on"))


def test_the_summary_itself_is_not_shown_as_an_answer() -> None:
    agent = machine(*exchange(1), *exchange(2), *exchange(3))
    commands = hear(agent, asked(agent.handle(CompactionRequested())), answer("secret words"))
    assert all(isinstance(command, SaveHistory | ShowNotice | TurnEnd) for command in commands)
    assert commands[-1] == TurnEnd("done")
    assert len(agent.history) == 5


def test_nothing_to_summarise_is_said() -> None:
    agent = machine()
    assert agent.handle(CompactionRequested()) == [TurnEnd("done", "there is nothing to summarise yet")]


def test_an_interrupted_summary_changes_nothing() -> None:
    history = (*exchange(1), *exchange(2), *exchange(3))
    agent = machine(*history)
    agent.handle(CompactionRequested())
    assert agent.handle(InterruptRequested())[-1] == TurnEnd("interrupted")
    assert agent.history == history


def test_a_long_turn_is_summarised_between_its_steps_and_goes_on() -> None:
    agent = machine(context=30_000)
    commands = agent.handle(UserMessage("read everything"))
    for number in range(8):
        ask = asked(commands)
        if ask.purpose == "summary":
            break
        commands = finish(agent, hear(agent, ask, answer(call(f"c{number}"))), text=f"{number}{LONG}")
    assert ask.purpose == "summary"
    following = asked(hear(agent, ask, answer("read four files")))
    assert isinstance(following, SendRequest)
    assert repair(following.request.messages, ends_with_user=True)[1] == ()
    assert "read everything" in str(following.request.messages[0])
    assert isinstance(following.request.messages[-1].parts[0], ToolResult)
