"""Performs the machine's commands: sends requests, runs tools concurrently, shows, saves and cancels."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from typing import Any, Protocol, assert_never

from dragoman import ir
from dragoman.agent.approve import WAITS, MachineApprover, Waits
from dragoman.agent.events import (
    Answer,
    ApprovalAnswered,
    Ask,
    AskApproval,
    Cancel,
    Command,
    Event,
    Heard,
    Interrupted,
    Question,
    Remark,
    Run,
    Save,
    Say,
    Settle,
    ShowCall,
    Shown,
    ShowResult,
    Stop,
    Think,
    ToolFinished,
)
from dragoman.agent.history import error_result
from dragoman.agent.machine import Machine
from dragoman.agent.model import Model
from dragoman.errors import DragomanError
from dragoman.tools.definition import Context


class Screen(Protocol):
    """Displays a turn and asks the person for approval."""

    def show(self, shown: Shown) -> None: ...

    def progress(self, line: str) -> None:
        """Show a status line of a running tool."""
        ...

    async def approve(self, question: Question) -> Answer: ...


class Hands(Protocol):
    """Executes tool calls; implemented by `tools.handler.Handler`."""

    async def execute(self, call: ir.ToolCall, context: Context) -> ir.ToolResult: ...


class Keeper(Protocol):
    """Saves messages of the history."""

    async def keep(self, save: Save) -> None: ...


class Runner:
    """Drives the machine of one session; `interrupt` and `post` may be called while `turn` runs."""

    def __init__(
        self,
        machine: Machine,
        model: Model,
        hands: Hands,
        screen: Screen,
        keeper: Keeper,
        *,
        approver: MachineApprover | None = None,
        context: Context | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.machine = machine
        self._model = model
        self._hands = hands
        self._screen = screen
        self._keeper = keeper
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
        self.post(Interrupted())

    async def turn(self, first: Event) -> Stop:
        """Run a turn from its first event and return its `Stop`.

        If this is cancelled or a command fails, everything the turn started is cancelled.
        """
        self._events = asyncio.Queue()
        if self._unsaved:
            await self._keeper.keep(Save(self.machine.history, instead=True))
            self._unsaved = False
        self.post(first)
        try:
            while True:
                stop = await self._perform(self.machine.handle(await self._events.get()))
                if stop is not None:
                    return stop
        except BaseException:
            self.machine.handle(Interrupted())  # the machine must be idle again
            self._unsaved = True
            raise
        finally:
            await self._cancel()

    async def _perform(self, commands: list[Command]) -> Stop | None:
        for command in commands:
            match command:
                case Ask():
                    self._start(self._ask(command))
                case Run():
                    for call in command.calls:
                        self._start(self._execute(call))
                case AskApproval():
                    self._start(self._approve(command.question))
                case Settle():
                    self._approver.settle(command.question_id, command.answer)
                case Save():
                    await self._keeper.keep(command)
                case Cancel():
                    await self._cancel()
                case Say() | Think() | ShowCall() | ShowResult() | Remark():
                    self._screen.show(command)
                case Stop():
                    return command
                case _:
                    assert_never(command)
        return None

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(self, ask: Ask) -> None:
        try:
            async with aclosing(self._model.ask(ask.request)) as events:  # type: ignore[type-var]
                async for event in events:
                    self.post(Heard(ask.number, event))
        except Exception as error:
            self.post(Heard(ask.number, ir.Failed(_explain(error))))

    async def _execute(self, call: ir.ToolCall) -> None:
        waits = Waits()
        WAITS.set(waits)
        began = self._clock()
        try:
            result = await self._hands.execute(call, self._context)
        except Exception as error:
            result = error_result(call, str(_explain(error)))
        self.post(ToolFinished(result, max(0.0, self._clock() - began - waits.seconds)))

    async def _approve(self, question: Question) -> None:
        """Ask the person; a screen that raises counts as `no`."""
        try:
            answer = await self._screen.approve(question)
        except Exception as error:
            self._screen.show(Remark(str(_explain(error))))
            answer = "no"
        self.post(ApprovalAnswered(question.id, answer))

    async def _cancel(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _explain(error: Exception) -> DragomanError:
    if isinstance(error, DragomanError):
        return error
    return DragomanError(f"{type(error).__name__}: {error}", kind="internal")
