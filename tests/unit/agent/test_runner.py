"""The runner really asks, really runs in parallel, and really stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from dragoman import ir
from dragoman.agent.events import (
    ApprovalAnswer,
    ApprovalQuestion,
    Event,
    LimitReached,
    SaveHistory,
    ShowCommand,
    ShowNotice,
    ShowResult,
    ShowText,
    TurnEnd,
    UserMessage,
)
from dragoman.agent.runner import AgentRunner, MachineApprover
from dragoman.ir import Text, ToolCall, ToolResult
from dragoman.store import StoreUnavailable
from dragoman.tools.definition import Context, ToolDefinition
from tests.unit.agent.builders import answer, call, machine, result


class Scripted:
    """A model that gives these answers, one after the other; an exception is raised, None waits for ever."""

    def __init__(self, *answers: list[ir.Event] | Exception | None) -> None:
        self.answers = list(answers)
        self.asked: list[ir.Request] = []
        self.closed = 0

    async def stream(self, request: ir.Request) -> AsyncIterator[ir.Event]:
        self.asked.append(request)
        due = self.answers.pop(0)
        try:
            if due is None:
                yield ir.Started("m")
                yield ir.TextDelta("begun")
                await asyncio.Event().wait()
            if isinstance(due, Exception):
                raise due
            for event in due or ():
                yield event
        finally:
            self.closed += 1


class Hands:
    """Tools by name; those without a function answer with their name."""

    def __init__(self, **tools: Callable[[], Any]) -> None:
        self.tools = tools
        self.cancelled: list[str] = []

    async def execute(self, call: ToolCall, context: Context) -> ToolResult:
        try:
            if call.name in self.tools:
                await self.tools[call.name]()
            return result(call.id, f"{call.name} for {context.session}")
        except asyncio.CancelledError:
            self.cancelled.append(call.name)
            raise


class Seen:
    def __init__(self, *answers: ApprovalAnswer | Exception) -> None:
        self.shown: list[ShowCommand] = []
        self.answers = list(answers)
        self.questions: list[ApprovalQuestion] = []
        self.on_show: Callable[[ShowCommand], None] = lambda _shown: None

    def show(self, shown: ShowCommand) -> None:
        self.shown.append(shown)
        self.on_show(shown)

    def progress(self, line: str) -> None:
        self.shown.append(ShowNotice(line))

    async def approve(self, question: ApprovalQuestion) -> ApprovalAnswer:
        self.questions.append(question)
        await asyncio.sleep(0)
        due = self.answers.pop(0)
        if isinstance(due, Exception):
            raise due
        return due


class Kept:
    def __init__(self) -> None:
        self.messages: tuple[ir.Message, ...] = ()

    async def save(self, save: SaveHistory) -> None:
        self.messages = save.messages if save.replace else (*self.messages, *save.messages)


def runner(
    model: Scripted,
    hands: Hands | None = None,
    seen: Seen | None = None,
    approver: MachineApprover | None = None,
) -> tuple[AgentRunner, Kept]:
    kept = Kept()
    context = Context(session="s1")
    made = AgentRunner(
        machine(), model, hands or Hands(), seen or Seen(), kept, approver=approver, context=context
    )
    return made, kept


async def test_a_turn_asks_runs_and_ends() -> None:
    model = Scripted(answer(call("a", "look"), call("b", "see")), answer("both seen"))
    seen = Seen()
    agent, kept = runner(model, seen=seen)
    assert await agent.turn(UserMessage("look")) == TurnEnd("done")
    texts = [one.result.content for one in seen.shown if isinstance(one, ShowResult)]
    assert texts == [(Text(text="look for s1"),), (Text(text="see for s1"),)]
    assert ShowText("both seen") in seen.shown
    assert kept.messages == agent.machine.history
    assert model.closed == 2


async def test_tools_of_one_step_run_at_the_same_time() -> None:
    meeting = asyncio.Barrier(2)
    hands = Hands(look=meeting.wait, see=meeting.wait)
    agent, _ = runner(Scripted(answer(call("a", "look"), call("b", "see")), answer("met")), hands)
    async with asyncio.timeout(10):
        assert await agent.turn(UserMessage("meet")) == TurnEnd("done")


async def test_an_interrupt_stops_running_tools_for_real() -> None:
    started = asyncio.Event()

    async def sleep() -> None:
        started.set()
        await asyncio.Event().wait()

    hands = Hands(look=sleep)
    agent, kept = runner(Scripted(answer(call())), hands)
    turn = asyncio.create_task(agent.turn(UserMessage("look")))
    await started.wait()
    agent.interrupt()
    assert await turn == TurnEnd("interrupted")
    assert hands.cancelled == ["look"]
    last = kept.messages[-1].parts[0]
    assert isinstance(last, ToolResult)
    assert last.is_error


async def test_an_interrupt_closes_the_running_request() -> None:
    model, seen = Scripted(None, answer("and on")), Seen()
    agent, kept = runner(model, seen=seen)
    seen.on_show = lambda shown: agent.interrupt() if shown == ShowText("begun") else None
    assert await agent.turn(UserMessage("hello")) == TurnEnd("interrupted")
    assert model.closed == 1
    assert kept.messages[1].parts == (Text(text="begun"),)
    seen.on_show = lambda _shown: None
    assert await agent.turn(UserMessage("go on")) == TurnEnd("done")


async def test_a_limit_from_outside_ends_the_turn() -> None:
    seen = Seen()
    agent, _ = runner(Scripted(None), seen=seen)
    seen.on_show = lambda _shown: agent.post(LimitReached("out of time"))
    assert await agent.turn(UserMessage("hello")) == TurnEnd("time", "out of time")


async def test_a_cancelled_turn_leaves_nothing_running() -> None:
    model = Scripted(None)
    agent, _ = runner(model)
    turn = asyncio.create_task(agent.turn(UserMessage("hello")))
    while not model.asked:
        await asyncio.sleep(0)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert model.closed == 1


async def test_a_model_that_raises_is_a_failed_turn_and_no_crash() -> None:
    agent, _ = runner(Scripted(RuntimeError("boom")))
    assert await agent.turn(UserMessage("hello")) == TurnEnd("failed", "RuntimeError: boom")


async def test_a_handler_that_raises_is_an_error_result() -> None:
    async def boom() -> None:
        raise OSError("disk full")

    agent, kept = runner(Scripted(answer(call()), answer("sorry")), Hands(look=boom))
    assert await agent.turn(UserMessage("look")) == TurnEnd("done")
    told = kept.messages[2].parts[0]
    assert isinstance(told, ToolResult)
    assert told.is_error
    assert "disk full" in str(told.content)


async def test_a_full_disk_ends_the_turn_and_the_next_one_saves_everything() -> None:
    class Full(Kept):
        broken = False

        async def save(self, save: SaveHistory) -> None:
            if self.broken:
                raise StoreUnavailable("disk full")
            await super().save(save)

    kept, hands = Full(), Hands()

    async def fill() -> None:
        kept.broken = True

    hands.tools["look"] = fill
    model = Scripted(answer(call()), answer("back again"))
    agent = AgentRunner(machine(), model, hands, Seen(), kept)
    with pytest.raises(StoreUnavailable):
        await agent.turn(UserMessage("look"))
    kept.broken = False
    assert await agent.turn(UserMessage("still there?")) == TurnEnd("done")
    assert kept.messages == agent.machine.history
    assert [message.role for message in kept.messages] == ["user", "model", "user", "system", "user", "model"]


# Approval

WRITE = ToolDefinition(name="write_file", risk="write", subject=lambda args: str(args["path"]))


def asking_hands(approver: MachineApprover, verdicts: list[str], path: str = "a.txt") -> Hands:
    async def ask() -> None:
        verdicts.append(await approver.approve(WRITE, {"path": path}, Context(session="s1"), "+new"))

    return Hands(write_file=ask)


@pytest.mark.parametrize(("given", "verdict"), [("once", "once"), ("always", "always"), ("no", "no")])
async def test_a_question_reaches_the_person_and_the_answer_the_tool(
    given: ApprovalAnswer, verdict: str
) -> None:
    approver, verdicts, seen = MachineApprover(), list[str](), Seen(given)
    hands = asking_hands(approver, verdicts)
    agent, _ = runner(Scripted(answer(call("a", "write_file")), answer("ok")), hands, seen, approver)
    await agent.turn(UserMessage("write"))
    assert verdicts == [verdict]
    assert seen.questions == [ApprovalQuestion(id="q1", tool="write_file", subject="a.txt", preview="+new")]


async def test_never_is_not_asked_again() -> None:
    approver, verdicts, seen = MachineApprover(), list[str](), Seen("never")
    hands = asking_hands(approver, verdicts)
    model = Scripted(answer(call("a", "write_file")), answer(call("b", "write_file")), answer("ok"))
    agent, _ = runner(model, hands, seen, approver)
    await agent.turn(UserMessage("write twice"))
    assert verdicts == ["no", "no"]
    assert len(seen.questions) == 1


async def test_a_screen_that_breaks_says_no() -> None:
    approver, verdicts, seen = MachineApprover(), list[str](), Seen(OSError("the terminal is gone"))
    hands = asking_hands(approver, verdicts)
    agent, _ = runner(Scripted(answer(call("a", "write_file")), answer("ok")), hands, seen, approver)
    await agent.turn(UserMessage("write"))
    assert verdicts == ["no"]
    assert ShowNotice("OSError: the terminal is gone") in seen.shown


async def test_an_approver_without_a_runner_says_no() -> None:
    assert await MachineApprover().approve(WRITE, {"path": "a"}, Context(), "") == "no"


async def test_an_answer_nobody_waits_for_is_dropped() -> None:
    MachineApprover().resolve("q9", "once")


async def test_waiting_for_a_person_is_not_the_tools_time() -> None:
    now = [0.0]
    approver, verdicts = MachineApprover(clock=lambda: now[0]), list[str]()

    class Slow(Seen):
        async def approve(self, question: ApprovalQuestion) -> ApprovalAnswer:
            now[0] += 60
            return await super().approve(question)

    seen = Slow("once")
    kept = Kept()
    agent = AgentRunner(
        machine(),
        Scripted(answer(call("a", "write_file")), answer("ok")),
        asking_hands(approver, verdicts),
        seen,
        kept,
        approver=approver,
        clock=lambda: now[0],
    )
    await agent.turn(UserMessage("write"))
    assert [one.seconds for one in seen.shown if isinstance(one, ShowResult)] == [0.0]


async def test_events_of_an_earlier_turn_are_gone() -> None:
    agent, _ = runner(Scripted(answer("one"), answer("two")))
    await agent.turn(UserMessage("1"))
    late: Event = LimitReached("late")
    agent.post(late)
    assert await agent.turn(UserMessage("2")) == TurnEnd("done")
