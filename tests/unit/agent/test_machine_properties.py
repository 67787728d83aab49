"""Whatever happens in whatever order, Google accepts the history and no call is left alone."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dragoman import ir
from dragoman.agent.events import (
    ApprovalAnswered,
    ApprovalQuestion,
    ApprovalRequested,
    AskApproval,
    CancelTasks,
    Command,
    CompactionRequested,
    Event,
    InterruptRequested,
    ModelEvent,
    ResolveApproval,
    RunTools,
    SaveHistory,
    SendRequest,
    ToolFinished,
    TurnEnd,
    UserMessage,
)
from dragoman.agent.machine import AgentMachine
from dragoman.ir import Message, ToolCall, ToolResult
from dragoman.translation.repair import repair
from tests.unit.agent.builders import TEMPLATE, answer, call, fail, machine, result

REASONS: list[ir.StopReason] = ["end", "tool_calls", "max_tokens", "blocked", "malformed", "other"]


class Anything(RuleBasedStateMachine):
    """A world that answers in any order, interrupts at any moment and repeats itself."""

    def __init__(self) -> None:
        super().__init__()
        self.agent = machine(context=2_000, max_steps=6)
        self.saved: tuple[Message, ...] = ()
        self.stream: list[ir.Event] = []
        self.ask: SendRequest | None = None
        self.running: list[ToolCall] = []
        self.open_questions: list[str] = []
        self.settled: Counter[str] = Counter()
        self.asking = False
        self.number = 0

    def do(self, event: Event) -> None:
        was_busy = self.agent.state != "idle"
        commands = self.agent.handle(event)
        for command in commands:
            self.take(command)
        stops = [command for command in commands if isinstance(command, TurnEnd)]
        assert len(stops) <= 1
        assert not stops or commands[-1] is stops[0]
        if stops:
            assert self.agent.state == "idle"
            assert was_busy or isinstance(event, UserMessage | CompactionRequested)
            self.ask, self.running, self.open_questions, self.asking = None, [], [], False

    def take(self, command: Command) -> None:
        match command:
            case SendRequest():
                assert not self.running
                self.check(command.request.messages)
                self.ask, self.stream = command, []
            case RunTools():
                self.running = list(command.calls)
                self.ask = None
            case AskApproval():
                assert not self.asking
                self.asking = True
            case ResolveApproval():
                self.settled[command.question_id] += 1
                assert self.settled[command.question_id] == 1
            case SaveHistory():
                self.saved = command.messages if command.replace else (*self.saved, *command.messages)
            case CancelTasks():
                self.ask, self.running = None, []
            case _:
                pass

    def check(self, messages: tuple[Message, ...]) -> None:
        notes = repair(messages, ends_with_user=True)[1]
        assert [note for note in notes if "must begin with the user" not in note.why] == []
        for message, following in zip(messages, (*messages[1:], None), strict=True):
            calls = [part.id for part in message.parts if isinstance(part, ToolCall)]
            if calls:
                assert following is not None
                assert [part.call_id for part in following.parts if isinstance(part, ToolResult)] == calls

    @rule(text=st.text(max_size=1_500).map(lambda text: text or "x"))
    def say(self, text: str) -> None:
        self.do(UserMessage(text))

    @precondition(lambda self: self.ask is not None and not self.stream)
    @rule(
        texts=st.lists(st.text(max_size=400), max_size=2),
        calls=st.integers(0, 3),
        reason=st.sampled_from(REASONS),
        same=st.booleans(),
    )
    def begin_answer(self, texts: list[str], calls: int, reason: ir.StopReason, same: bool) -> None:
        made = []
        for _ in range(calls):
            self.number += 1
            made.append(call(f"c{self.number}", args=b"{}" if same else b'{"n":%d}' % self.number))
        self.stream = answer(*texts, *made, reason=reason)

    @precondition(lambda self: self.ask is not None and self.stream)
    @rule(pieces=st.integers(1, 12))
    def hear(self, pieces: int) -> None:
        ask = self.ask
        assert ask is not None
        heard, self.stream = self.stream[:pieces], self.stream[pieces:]
        for event in heard:
            if self.ask is not ask:
                break
            self.do(ModelEvent(ask.number, event))

    @precondition(lambda self: self.ask is not None)
    @rule(kind=st.sampled_from(["overflow", "overloaded"]))
    def break_off(self, kind: str) -> None:
        assert self.ask is not None
        self.do(ModelEvent(self.ask.number, fail(kind)[0]))

    @precondition(lambda self: self.running)
    @rule(data=st.data(), text=st.sampled_from(["same", "other", "long " * 300]))
    def finish(self, data: st.DataObject, text: str) -> None:
        done = data.draw(st.sampled_from(self.running))
        self.running.remove(done)
        self.do(ToolFinished(result(done.id, text)))

    @precondition(lambda self: self.running)
    @rule()
    def want(self) -> None:
        self.number += 1
        self.open_questions.append(f"q{self.number}")
        self.do(ApprovalRequested(ApprovalQuestion(id=f"q{self.number}", tool="write_file")))

    @precondition(lambda self: self.open_questions and self.asking)
    @rule(given=st.sampled_from(["once", "always", "no", "never"]))
    def reply(self, given: str) -> None:
        first = next(one for one in self.open_questions if not self.settled[one])
        self.asking = False
        self.do(ApprovalAnswered(first, given))  # type: ignore[arg-type]
        self.open_questions = [one for one in self.open_questions if not self.settled[one]]

    @rule()
    def interrupt(self) -> None:
        self.do(InterruptRequested())

    @rule()
    def compact(self) -> None:
        self.do(CompactionRequested())

    @rule(late=st.integers(0, 40))
    def straggle(self, late: int) -> None:
        """A result or a piece of an answer that nobody waits for any more."""
        if all(one.id != f"c{late}" for one in self.running):
            self.do(ToolFinished(result(f"c{late}")))
        self.do(ModelEvent(-1, ir.TextDelta("late")))

    @rule()
    def die_and_resume(self) -> None:
        """kill -9: what was saved is all there is."""
        self.agent = AgentMachine(
            TEMPLATE,
            context_tokens=2_000,
            limits=self.agent.limits,
            history=self.saved,
            usage=self.agent.usage,
        )
        self.saved = self.agent.history
        self.ask, self.stream, self.running, self.open_questions, self.asking = None, [], [], [], False

    @invariant()
    def what_is_saved_is_the_history(self) -> None:
        assert self.saved == self.agent.history

    @invariant()
    def an_idle_agent_can_go_on(self) -> None:
        if self.agent.state == "idle" and self.agent.history:
            self.check((*self.agent.history, Message(role="user", parts=(ir.Text(text="go on"),))))


TestAnything = Anything.TestCase
TestAnything.settings = settings(
    max_examples=80,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
