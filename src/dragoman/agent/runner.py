"""Performs the machine's commands: sends requests, runs tools concurrently, shows, saves and cancels.

`MachineApprover` connects the permission guard of the tools with the machine: the guard awaits `approve`, which
posts the question as an event; the machine decides when the person is asked and returns the answer to `resolve`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from contextvars import ContextVar
from typing import Any, Protocol, assert_never

from dragoman import ir
from dragoman.agent.events import (
    ApprovalAnswer,
    ApprovalAnswered,
    ApprovalQuestion,
    ApprovalRequested,
    AskApproval,
    CancelTasks,
    Command,
    Event,
    InterruptRequested,
    ModelEvent,
    ResolveApproval,
    RunTools,
    SaveHistory,
    SendRequest,
    ShowCall,
    ShowCommand,
    ShowNotice,
    ShowResult,
    ShowText,
    ShowThought,
    ToolFinished,
    TurnEnd,
)
from dragoman.agent.history import error_result
from dragoman.agent.machine import AgentMachine
from dragoman.agent.model import AgentModel
from dragoman.errors import DragomanError
from dragoman.tools.definition import Context, ToolDefinition
from dragoman.tools.permissions import Verdict

_VERDICTS: dict[ApprovalAnswer, Verdict] = {"once": "once", "always": "always", "no": "no", "never": "no"}


class ApprovalWait:
    """How long a call has waited for approval; this time is subtracted from the tool's duration."""

    def __init__(self) -> None:
        self.seconds = 0.0


#: Set by the runner for each call.
APPROVAL_WAIT: ContextVar[ApprovalWait | None] = ContextVar("waits", default=None)


class MachineApprover:
    """An `Approver` that posts each question as an event and waits for the machine's answer."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._post: Callable[[Event], None] | None = None
        self._asked = 0
        self._waiting: dict[str, asyncio.Future[ApprovalAnswer]] = {}
        self._never: set[tuple[str, str, str]] = set()

    def connect(self, post: Callable[[Event], None]) -> None:
        """Set where questions are posted; until then every answer is `no`."""
        self._post = post

    async def approve(
        self, definition: ToolDefinition, args: dict[str, Any], context: Context, preview: str
    ) -> Verdict:
        subject = definition.subject(args) if definition.subject is not None else ""
        key = (context.session, definition.name, subject)
        if self._post is None or key in self._never:
            return "no"
        self._asked += 1
        question = ApprovalQuestion(
            id=f"q{self._asked}", tool=definition.name, subject=subject, preview=preview
        )
        answer: asyncio.Future[ApprovalAnswer] = asyncio.get_running_loop().create_future()
        self._waiting[question.id] = answer
        started = self._clock()
        self._post(ApprovalRequested(question))
        try:
            given = await answer
        finally:
            del self._waiting[question.id]
            approval_wait = APPROVAL_WAIT.get()
            if approval_wait is not None:
                approval_wait.seconds += self._clock() - started
        if given == "never":
            self._never.add(key)
        return _VERDICTS[given]

    def resolve(self, question_id: str, answer: ApprovalAnswer) -> None:
        """Deliver the answer to the waiting `approve`; an unknown or settled question is ignored."""
        waiting = self._waiting.get(question_id)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)


class AgentScreen(Protocol):
    """Displays a turn and asks the person for approval."""

    def show(self, shown: ShowCommand) -> None: ...

    def progress(self, line: str) -> None:
        """Show a status line of a running tool."""
        ...

    async def approve(self, question: ApprovalQuestion) -> ApprovalAnswer: ...


class ToolExecutor(Protocol):
    """Executes tool calls; implemented by `tools.handler.Handler`."""

    async def execute(self, call: ir.ToolCall, context: Context) -> ir.ToolResult: ...


class HistoryWriter(Protocol):
    """Saves messages of the history."""

    async def save(self, save: SaveHistory) -> None: ...


class AgentRunner:
    """Drives the machine of one session; `interrupt` and `post` may be called while `turn` runs."""

    def __init__(
        self,
        machine: AgentMachine,
        model: AgentModel,
        tool_executor: ToolExecutor,
        screen: AgentScreen,
        history_writer: HistoryWriter,
        *,
        approver: MachineApprover | None = None,
        context: Context | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.machine = machine
        self._model = model
        self._tool_executor = tool_executor
        self._screen = screen
        self._history_writer = history_writer
        self._approver = approver or MachineApprover()
        self._context = context or Context(caller="agent", progress=screen.progress)
        self._clock = clock
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._unsaved = False  # the history on disk is behind the machine's
        self._approver.connect(self.post)

    def post(self, event: Event) -> None:
        self._events.put_nowait(event)

    def interrupt(self) -> None:
        self.post(InterruptRequested())

    async def turn(self, first: Event) -> TurnEnd:
        """Run a turn from its first event and return its `TurnEnd`.

        If this is cancelled or a command fails, everything the turn started is cancelled.
        """
        self._events = asyncio.Queue()
        if self._unsaved:
            await self._history_writer.save(SaveHistory(self.machine.history, replace=True))
            self._unsaved = False
        self.post(first)
        try:
            while True:
                stop = await self._perform(self.machine.handle(await self._events.get()))
                if stop is not None:
                    return stop
        except BaseException:
            self.machine.handle(InterruptRequested())  # the machine must be idle again
            self._unsaved = True
            raise
        finally:
            await self._cancel()

    async def _perform(self, commands: list[Command]) -> TurnEnd | None:
        for command in commands:
            match command:
                case SendRequest():
                    self._start(self._ask(command))
                case RunTools():
                    for call in command.calls:
                        self._start(self._execute(call))
                case AskApproval():
                    self._start(self._approve(command.question))
                case ResolveApproval():
                    self._approver.resolve(command.question_id, command.answer)
                case SaveHistory():
                    await self._history_writer.save(command)
                case CancelTasks():
                    await self._cancel()
                case ShowText() | ShowThought() | ShowCall() | ShowResult() | ShowNotice():
                    self._screen.show(command)
                case TurnEnd():
                    return command
                case _:
                    assert_never(command)
        return None

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(self, command: SendRequest) -> None:
        try:
            async with aclosing(self._model.stream(command.request)) as events:  # type: ignore[type-var]
                async for event in events:
                    self.post(ModelEvent(command.number, event))
        except Exception as error:
            self.post(ModelEvent(command.number, ir.Failed(_as_dragoman_error(error))))

    async def _execute(self, call: ir.ToolCall) -> None:
        approval_wait = ApprovalWait()
        APPROVAL_WAIT.set(approval_wait)
        started = self._clock()
        try:
            result = await self._tool_executor.execute(call, self._context)
        except Exception as error:
            result = error_result(call, str(_as_dragoman_error(error)))
        self.post(ToolFinished(result, max(0.0, self._clock() - started - approval_wait.seconds)))

    async def _approve(self, question: ApprovalQuestion) -> None:
        """Ask the person; a screen that raises counts as `no`."""
        try:
            answer = await self._screen.approve(question)
        except Exception as error:
            self._screen.show(ShowNotice(str(_as_dragoman_error(error))))
            answer = "no"
        self.post(ApprovalAnswered(question.id, answer))

    async def _cancel(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _as_dragoman_error(error: Exception) -> DragomanError:
    if isinstance(error, DragomanError):
        return error
    return DragomanError(f"{type(error).__name__}: {error}", kind="internal")
