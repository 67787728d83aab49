"""The loop by the book: what happens, and what the agent wants done about it."""

from __future__ import annotations

import pytest

from dragoman import ir
from dragoman.agent.events import (
    ApprovalAnswered,
    ApprovalQuestion,
    ApprovalRequested,
    AskApproval,
    CancelTasks,
    CompactionRequested,
    InterruptRequested,
    LimitReached,
    ModelEvent,
    ResolveApproval,
    RunTools,
    SaveHistory,
    ShowCall,
    ShowNotice,
    ShowResult,
    ShowText,
    ShowThought,
    ToolFinished,
    TurnEnd,
    UserMessage,
)
from dragoman.agent.history import ANSWER_INTERRUPTED, CALL_INTERRUPTED, RESULT_LOST, without_last_turn
from dragoman.ir import Text, ToolResult
from tests.unit.agent.builders import (
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


def test_a_question_is_asked_shown_saved_and_done() -> None:
    agent = machine()
    commands = agent.handle(UserMessage("hello"))
    ask = asked(commands)
    assert commands == [SaveHistory((user("hello"),)), ask]
    assert ask.request.messages == (user("hello"),)
    assert hear(agent, ask, answer("hi ", "there")) == [
        ShowText("hi "),
        ShowText("there"),
        SaveHistory((model(Text(text="hi there")),)),
        TurnEnd("done"),
    ]
    assert agent.state == "idle"
    assert agent.usage.tokens == 110
    assert agent.usage.cost_usd == pytest.approx(100 * 0.3e-6 + 10 * 2.5e-6)


def test_thoughts_are_shown_and_other_events_are_not() -> None:
    agent = machine()
    ask = asked(agent.handle(UserMessage("hello")))
    assert agent.handle(ModelEvent(ask.number, ir.Started("m"))) == []
    assert agent.handle(ModelEvent(ask.number, ir.ThoughtDelta("hm"))) == [ShowThought("hm")]


def test_calls_run_together_and_their_results_stand_in_call_order() -> None:
    agent = machine()
    ask = asked(agent.handle(UserMessage("look")))
    commands = hear(agent, ask, answer("let me see", call("a"), call("b")))
    assert commands[-3:] == [ShowCall(call("a")), ShowCall(call("b")), RunTools((call("a"), call("b")))]
    first = agent.handle(ToolFinished(result("b", "B"), 0.5))
    assert isinstance(first[0], ShowResult)
    assert first[0].seconds == 0.5
    assert len(first) == 1
    following = asked(agent.handle(ToolFinished(result("a", "A"))))
    last = following.request.messages[-1]
    assert [part.content for part in last.parts if isinstance(part, ToolResult)] == [
        (Text(text="A"),),
        (Text(text="B"),),
    ]
    assert all(isinstance(part, ToolResult) and part.name == "look" for part in last.parts)


def test_a_result_is_taken_once_and_only_for_a_call_that_runs() -> None:
    agent = machine()
    ask = asked(agent.handle(UserMessage("look")))
    hear(agent, ask, answer(call("a"), call("b")))
    agent.handle(ToolFinished(result("a")))
    assert agent.handle(ToolFinished(result("a", "again"))) == []
    assert agent.handle(ToolFinished(result("stranger"))) == []
    asked(agent.handle(ToolFinished(result("b"))))
    assert agent.handle(ToolFinished(result("b"))) == []


@pytest.mark.parametrize(
    ("reason", "raw", "stop"),
    [
        ("max_tokens", "MAX_TOKENS", TurnEnd("cut", "MAX_TOKENS")),
        ("blocked", "SAFETY", TurnEnd("blocked", "SAFETY")),
        ("malformed", "MALFORMED_FUNCTION_CALL", TurnEnd("failed", "MALFORMED_FUNCTION_CALL")),
        ("other", "NEW_WORD", TurnEnd("failed", "NEW_WORD")),
    ],
)
def test_an_answer_that_did_not_end_well_ends_the_turn_with_the_reason(
    reason: ir.StopReason, raw: str, stop: TurnEnd
) -> None:
    agent = machine()
    ask = asked(agent.handle(UserMessage("hello")))
    assert hear(agent, ask, answer("so far", reason=reason, raw=raw))[-1] == stop
    assert agent.history[-1] == model(Text(text="so far"))


def test_an_empty_answer_is_a_failure_and_leaves_no_empty_message() -> None:
    agent = machine()
    ask = asked(agent.handle(UserMessage("hello")))
    assert hear(agent, ask, answer()) == [TurnEnd("failed", "the model returned an empty response")]
    assert agent.history == (user("hello"),)


def test_a_cut_call_is_never_run() -> None:
    agent = machine()
    ask = asked(agent.handle(UserMessage("write")))
    commands = hear(agent, ask, answer(call(), reason="max_tokens", raw="MAX_TOKENS"))
    assert not any(isinstance(command, RunTools) for command in commands)
    told = asked(commands).request.messages[-1].parts[0]
    assert isinstance(told, ToolResult)
    assert told.is_error
    assert "MAX_TOKENS" in str(told.content)


def test_a_failure_ends_the_turn_and_says_why() -> None:
    agent = machine()
    ask = asked(agent.handle(UserMessage("hello")))
    assert hear(agent, ask, fail()) == [TurnEnd("failed", "it broke")]
    assert asked(agent.handle(UserMessage("again"))).request.messages == (user("hello"), user("again"))


def test_nothing_is_heard_of_a_request_that_is_over() -> None:
    agent = machine()
    ask = asked(agent.handle(UserMessage("hello")))
    agent.handle(InterruptRequested())
    assert agent.handle(ModelEvent(ask.number, ir.TextDelta("late"))) == []
    assert agent.handle(ModelEvent(ask.number + 1, ir.TextDelta("early"))) == []
    asked(agent.handle(UserMessage("next")))
    assert agent.handle(ModelEvent(ask.number, ir.TextDelta("later still"))) == []


def test_who_is_busy_takes_no_second_order() -> None:
    agent = machine()
    agent.handle(UserMessage("hello"))
    assert isinstance(agent.handle(UserMessage("and"))[0], ShowNotice)
    assert isinstance(agent.handle(CompactionRequested())[0], ShowNotice)
    assert agent.history == (user("hello"),)


# Interrupts


def test_an_interrupt_while_tools_run_gives_every_open_call_an_error() -> None:
    agent = machine()
    ask = asked(agent.handle(UserMessage("look")))
    hear(agent, ask, answer(call("a"), call("b")))
    agent.handle(ToolFinished(result("a")))
    commands = agent.handle(InterruptRequested())
    assert commands[0] == CancelTasks()
    assert commands[-1] == TurnEnd("interrupted")
    done, stopped = agent.history[-1].parts
    assert isinstance(done, ToolResult)
    assert not done.is_error
    assert isinstance(stopped, ToolResult)
    assert stopped.is_error
    assert stopped.content == (Text(text=CALL_INTERRUPTED),)


def test_an_interrupt_keeps_what_was_said_and_drops_half_a_call() -> None:
    agent = machine()
    ask = asked(agent.handle(UserMessage("hello")))
    for event in (ir.Started("m"), ir.TextDelta("I will")):
        agent.handle(ModelEvent(ask.number, event))
    agent.handle(InterruptRequested())
    assert agent.history[1] == model(Text(text="I will"))
    assert agent.history[2].role == "system"
    assert agent.history[2].parts == (Text(text=ANSWER_INTERRUPTED),)


def test_an_interrupt_before_a_word_adds_no_empty_answer() -> None:
    agent = machine()
    agent.handle(UserMessage("hello"))
    agent.handle(InterruptRequested())
    assert [message.role for message in agent.history] == ["user", "system"]


def test_an_interrupt_of_nothing_is_nothing() -> None:
    assert machine().handle(InterruptRequested()) == []


def test_a_limit_of_the_outside_ends_the_turn_like_an_interrupt() -> None:
    agent = machine()
    agent.handle(UserMessage("hello"))
    assert agent.handle(LimitReached("60 s are over"))[-1] == TurnEnd("time", "60 s are over")


# Fuses


def test_the_step_limit_stops_before_another_request() -> None:
    agent = machine(max_steps=2)
    commands = agent.handle(UserMessage("look"))
    for number in range(2):
        commands = hear(agent, asked(commands), answer(call(f"c{number}", args=b'{"n":%d}' % number)))
        commands = finish(agent, commands)
    assert commands[-1] == TurnEnd("max_steps", "the limit of 2 steps for one turn is reached")
    assert asked(agent.handle(UserMessage("go on"))).purpose == "answer"


def test_the_token_fuse_counts_the_whole_session() -> None:
    agent = machine(max_tokens=110)
    hear(agent, asked(agent.handle(UserMessage("one"))), answer("1"))
    assert agent.handle(UserMessage("two"))[-1] == TurnEnd(
        "max_tokens", "110 tokens are used, the limit is 110"
    )


def test_the_money_fuse_stops() -> None:
    agent = machine(max_cost_usd=0.00001)
    hear(agent, asked(agent.handle(UserMessage("one"))), answer("1"))
    stop = agent.handle(UserMessage("two"))[-1]
    assert isinstance(stop, TurnEnd)
    assert stop.reason == "max_cost"


def test_an_unknown_price_is_unknown_and_trips_a_money_fuse() -> None:
    agent = machine(max_cost_usd=100)
    hear(agent, asked(agent.handle(UserMessage("one"))), answer("1", name="gemini-99-secret"))
    assert agent.usage.cost_usd is None
    stop = agent.handle(UserMessage("two"))[-1]
    assert isinstance(stop, TurnEnd)
    assert "unknown" in stop.detail


def test_a_model_in_a_circle_is_told_at_three_and_stopped_at_five() -> None:
    agent = machine()
    commands = agent.handle(UserMessage("look"))
    roles = []
    for number in range(5):
        args = b'{"a":1,"b":2}' if number % 2 else b'{ "b": 2, "a": 1 }'
        commands = finish(agent, hear(agent, asked(commands), answer(call(f"c{number}", args=args))))
        roles.append(agent.history[-1].role)
    assert roles == ["user", "user", "system", "system", "user"]
    assert commands[-1] == TurnEnd("loop", "look was called 5 times with the same arguments")


def test_the_same_call_with_another_answer_is_progress() -> None:
    agent = machine()
    commands = agent.handle(UserMessage("test until green"))
    for number in range(9):
        heard = hear(agent, asked(commands), answer(call(f"c{number}")))
        commands = finish(agent, heard, text=f"{9 - number} failures")
    assert asked(commands).purpose == "answer"
    assert all(message.role != "system" for message in agent.history)


def test_arguments_that_are_no_json_are_compared_as_they_are() -> None:
    agent = machine()
    commands = agent.handle(UserMessage("look"))
    for number in range(3):
        commands = finish(agent, hear(agent, asked(commands), answer(call(f"c{number}", args=b"{oops"))))
    assert agent.history[-1].role == "system"


# Questions


def _question(number: int, subject: str = "a.txt") -> ApprovalQuestion:
    return ApprovalQuestion(id=f"q{number}", tool="write_file", subject=subject)


def test_questions_come_one_at_a_time() -> None:
    agent = machine()
    hear(agent, asked(agent.handle(UserMessage("write"))), answer(call("a"), call("b")))
    assert agent.handle(ApprovalRequested(_question(1))) == [AskApproval(_question(1))]
    assert agent.handle(ApprovalRequested(_question(2))) == []
    assert agent.handle(ApprovalAnswered("q2", "once")) == []
    assert agent.handle(ApprovalAnswered("q1", "no")) == [
        ResolveApproval("q1", "no"),
        AskApproval(_question(2)),
    ]
    assert agent.handle(ApprovalAnswered("q2", "once")) == [ResolveApproval("q2", "once")]
    assert agent.handle(ApprovalAnswered("q2", "once")) == []


@pytest.mark.parametrize("lasting", ["always", "never"])
def test_a_lasting_answer_is_meant_for_all_that_wait_with_the_same_wish(lasting: str) -> None:
    agent = machine()
    hear(agent, asked(agent.handle(UserMessage("write"))), answer(call("a"), call("b")))
    for question in (_question(1), _question(2, "other.txt"), _question(3)):
        agent.handle(ApprovalRequested(question))
    assert agent.handle(ApprovalAnswered("q1", lasting)) == [  # type: ignore[arg-type]
        ResolveApproval("q1", lasting),  # type: ignore[arg-type]
        ResolveApproval("q3", lasting),  # type: ignore[arg-type]
        AskApproval(_question(2, "other.txt")),
    ]


def test_who_asks_after_the_end_gets_a_no() -> None:
    agent = machine()
    hear(agent, asked(agent.handle(UserMessage("write"))), answer(call("a")))
    agent.handle(ApprovalRequested(_question(1)))
    assert ResolveApproval("q1", "no") in agent.handle(InterruptRequested())
    assert agent.handle(ApprovalRequested(_question(2))) == [ResolveApproval("q2", "no")]


# Sessions


def test_calls_that_died_with_their_process_get_an_error() -> None:
    agent = machine(user(), model(call("a"), call("b")))
    assert [part.content for part in agent.history[-1].parts if isinstance(part, ToolResult)] == [
        (Text(text=RESULT_LOST),)
    ] * 2
    assert machine(user(), model(Text(text="hi"))).history == (user(), model(Text(text="hi")))


def test_another_past_is_saved_instead_of_the_old_one() -> None:
    agent = machine(user("one"), model(Text(text="1")))
    assert agent.replace_history((user("two"),)) == SaveHistory((user("two"),), replace=True)


def test_undo_takes_the_whole_last_turn_away() -> None:
    before = (user("one"), model(Text(text="1")))
    turn = (user("two"), model(call()), results(result()), model(Text(text="2")))
    assert without_last_turn((*before, *turn)) == before
    assert without_last_turn(before) == ()
    assert without_last_turn(()) == ()


def test_another_model_is_used_from_the_next_request_on() -> None:
    agent = machine()
    agent.set_model("gemini-pro-latest", 2048)
    assert (agent.template.model, agent.context_tokens) == ("gemini-pro-latest", 2048)
