"""The interactive chat: reads lines, runs turns and slash commands, and handles Ctrl-C."""

from __future__ import annotations

import asyncio
import signal

from dragoman.agent.events import TurnEnd
from dragoman.agent.tui.prompt import Prompt, PromptInterrupted
from dragoman.agent.tui.screen import TerminalScreen
from dragoman.agent.tui.slash import ChatCommands, Quit, describe_usage, run_slash_command
from dragoman.agent.tui.style import TerminalStyle, escape_controls
from dragoman.errors import DragomanError
from dragoman.store import StoreUnavailable

PROMPT_LABEL = "> "


class Chat:
    """The chat loop; `run` returns when the user quits. A failed turn does not end the chat."""

    def __init__(
        self, room: ChatCommands, screen: TerminalScreen, prompt: Prompt, style: TerminalStyle
    ) -> None:
        self._room = room
        self._screen = screen
        self._prompt = prompt
        self._style = style
        self._reading: asyncio.Task[str] | None = None

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._ctrl_c)
        try:
            await self._loop()
        finally:
            loop.remove_signal_handler(signal.SIGINT)

    async def _loop(self) -> None:
        warned = False
        while True:
            try:
                line = await self._read()
            except EOFError:
                return
            except PromptInterrupted:
                if warned:
                    return
                warned = True
                self._screen.line(self._style.paint("Ctrl-C again or Ctrl-D to leave", "dim"))
                continue
            warned = False
            if line.strip():
                try:
                    await self._handle_line(line)
                except Quit:
                    return
                except (DragomanError, StoreUnavailable, OSError) as error:
                    self._show_error(str(error))

    def _ctrl_c(self) -> None:
        """Interrupt the turn, or the prompt if it is about to read but does not handle the keyboard yet."""
        if self._reading is None:
            self._room.conversation.interrupt()
        else:
            self._reading.cancel()

    async def _read(self) -> str:
        self._reading = asyncio.ensure_future(self._prompt.read(PROMPT_LABEL))
        try:
            return await self._reading
        except asyncio.CancelledError:
            if not self._reading.cancelled() or _is_cancelled():
                raise
            raise PromptInterrupted from None
        finally:
            self._reading = None

    async def _handle_line(self, line: str) -> None:
        if line.lstrip().startswith("/"):
            for one in await run_slash_command(self._room, line):
                self._screen.line(escape_controls(one))
            return
        async with self._screen.turn():
            stop = await self._room.conversation.send(line)
        self._show_stop(stop)

    def _show_stop(self, stop: TurnEnd) -> None:
        if stop.reason == "interrupted":
            self._screen.line(self._style.paint("stopped", "yellow"))
        elif stop.reason != "done":
            self._show_error(f"{stop.reason.replace('_', ' ')}: {stop.detail}")
        self._screen.line(self._style.paint(describe_usage(self._room.conversation.usage), "dim"))

    def _show_error(self, text: str) -> None:
        self._screen.line(self._style.paint(escape_controls(text), "red"))


def _is_cancelled() -> bool:
    """Return whether this task itself is being cancelled, not only the one it awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
