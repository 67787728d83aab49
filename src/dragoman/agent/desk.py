"""A conversation: the machine and its runner, the session on disk, and the current model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from dragoman import ir
from dragoman.agent.approve import MachineApprover
from dragoman.agent.events import CompactionWanted, Event, Interrupted, LimitReached, Save, Stop, UserSaid
from dragoman.agent.history import without_last_turn
from dragoman.agent.instructions import instructions
from dragoman.agent.limits import Limits, Spent
from dragoman.agent.machine import Machine
from dragoman.agent.model import Model
from dragoman.agent.runner import Hands, Runner, Screen
from dragoman.agent.sessions import Session, Sessions
from dragoman.dialects.gemini import profile_of
from dragoman.ir import Message, Text
from dragoman.tokens import new_token
from dragoman.tools.definition import Context


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """The dependencies and settings that all conversations of a process share."""

    root: Path
    model: Model
    hands: Hands
    screen: Screen
    sessions: Sessions
    approver: MachineApprover
    tools: Callable[[], tuple[ir.Tool, ...]]  # called before each turn: MCP servers come and go
    limits: Limits = Limits()
    read_only: bool = False
    caller: str = "agent"


class Desk:
    """One conversation; `say` runs a turn, and most other methods change the conversation between turns.

    `interrupt` and `limit` may be called while a turn runs.
    """

    def __init__(self, setup: Setup, session: Session, model_name: str) -> None:
        self.session = session
        self.model_name = model_name
        self._setup = setup
        self._listed = False
        self._runner = self._make_runner(session)

    @property
    def history(self) -> tuple[Message, ...]:
        return self._runner.machine.history

    @property
    def spent(self) -> Spent:
        return self._runner.machine.spent

    async def say(self, text: str) -> Stop:
        """Run a turn with the user's message and return how it ended."""
        return await self._turn(UserSaid(text))

    async def compact(self) -> Stop:
        """Summarise the old part of the history."""
        return await self._turn(CompactionWanted())

    def interrupt(self) -> None:
        self._runner.post(Interrupted())

    def limit(self, detail: str) -> None:
        """End the running turn because of an external limit, such as time; `detail` is its reason."""
        self._runner.post(LimitReached(detail))

    def use_model(self, name: str) -> None:
        """Change the model and keep the history.

        When a request is encoded, signatures of another model family are left out if the model would reject them.
        """
        self.model_name = name
        machine = self._runner.machine
        machine.template = msgspec.structs.replace(machine.template, model=name)
        machine.context_tokens = profile_of(name).input_tokens

    async def keep(self, save: Save) -> None:
        """Save messages to disk.

        The first save also adds the session to the list of sessions, because the process may be killed at any time.
        """
        await self.session.keep(save)
        if not self._listed:
            self._listed = True
            await self._setup.sessions.enlist(self.session)

    async def undo(self) -> tuple[Message, ...]:
        """Remove the last turn from the history and return its messages."""
        before = self.history
        kept = without_last_turn(before)
        if len(kept) < len(before):
            await self._replace(kept)
        return before[len(kept) :]

    async def rename(self, name: str) -> None:
        """Continue under another name; the session saved under the old name stays."""
        history, spent = self.history, self.spent
        await self._switch(await self._setup.sessions.open(name), spent)
        await self._replace(history)
        await self._save_metadata()

    async def resume(self, name: str) -> None:
        """Switch to the session of this name, with its history, model and usage."""
        await self._switch(await self._setup.sessions.open(name))

    async def clear(self) -> None:
        """Start an empty session under a generated name; usage counts on."""
        await self._switch(await self._setup.sessions.open(new_session_name()), self.spent)

    async def _turn(self, first: Event) -> Stop:
        machine = self._runner.machine
        machine.template = msgspec.structs.replace(machine.template, tools=self._setup.tools())
        try:
            return await self._runner.turn(first)
        finally:
            await self._save_metadata()

    async def _replace(self, history: tuple[Message, ...]) -> None:
        await self.session.keep(self._runner.machine.replace_history(history))

    async def _switch(self, session: Session, spent: Spent | None = None) -> None:
        self.session = session
        self._listed = False
        self.model_name = session.model or self.model_name
        if spent is not None:
            session.spent = spent
        self._runner = self._make_runner(session)

    async def _save_metadata(self) -> None:
        await self.session.note(self.spent, self.model_name, str(self._setup.root))
        await self._setup.sessions.enlist(self.session)

    def _make_runner(self, session: Session) -> Runner:
        setup = self._setup
        words = instructions(setup.root, read_only=setup.read_only)
        template = ir.Request(
            model=self.model_name,
            messages=(),
            system=(Text(text=words),),
            tools=setup.tools(),
            thinking=ir.Thinking(show=True),
            stream=True,
        )
        machine = Machine(
            template,
            context_tokens=profile_of(self.model_name).input_tokens,
            limits=setup.limits,
            history=session.history,
            spent=session.spent,
        )
        context = Context(session=session.name, caller=setup.caller, progress=setup.screen.progress)
        return Runner(
            machine,
            setup.model,
            setup.hands,
            setup.screen,
            self,
            approver=setup.approver,
            context=context,
        )


def new_session_name() -> str:
    return f"chat-{new_token()[:8]}"
