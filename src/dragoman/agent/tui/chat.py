"""The interactive chat: reads lines, runs turns and slash commands (`/help`, `/model`, `/undo`…), handles Ctrl-C.

Each slash command is a function that returns the lines to show.
"""

from __future__ import annotations

import asyncio
import difflib
import signal
import time
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from dragoman.agent.conversation import AgentConversation
from dragoman.agent.events import TurnEnd
from dragoman.agent.limits import SessionUsage
from dragoman.agent.sessions import SessionEntry, SessionStore
from dragoman.agent.tui.prompt import Prompt, PromptInterrupted
from dragoman.agent.tui.screens import TerminalScreen
from dragoman.agent.tui.style import TerminalStyle, escape_controls, shorten
from dragoman.errors import DragomanError
from dragoman.ir import Message, Text
from dragoman.store import StoreUnavailable
from dragoman.tools.registry import Registry

_SHOWN_COLUMNS = 60  # of the user's message in the reply to /undo


class ChatCommands(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that the commands work on."""

    conversation: AgentConversation
    sessions: SessionStore
    registry: Registry
    restore: Callable[[Sequence[Message]], list[str]]  # undoes the file changes of a turn


class Quit(Exception):
    """The user wants to leave the chat."""


async def run_slash_command(commands: ChatCommands, line: str) -> list[str]:
    """Run a command line such as `/model NAME` and return the lines to show; raise `Quit` for `/quit`."""
    word, _, rest = line.strip().partition(" ")
    command = COMMANDS.get(word)
    if command is None:
        near = difflib.get_close_matches(word, COMMANDS, n=1)
        return [f"unknown command {word}" + (f"; did you mean {near[0]}?" if near else "; try /help")]
    return await command[0](commands, rest.strip())


async def _help(_commands: ChatCommands, _rest: str) -> list[str]:
    width = max(map(len, COMMANDS))
    lines = [f"{word:<{width}}  {about}" for word, (_, about) in COMMANDS.items()]
    return [
        *lines,
        "",
        "Enter sends, Alt-Enter or a backslash before Enter starts a new line, the up arrow shows earlier input.",
        "Ctrl-C stops the turn; twice at the prompt it quits. Ctrl-D quits.",
    ]


async def _tools(commands: ChatCommands, _rest: str) -> list[str]:
    definitions = commands.registry.definitions()
    width = max((len(one.name) for one in definitions), default=0)
    return [
        f"{one.name:<{width}}  {one.risk:<5}  {' '.join(one.description.split())}" for one in definitions
    ] or ["there are no tools"]


async def _model(commands: ChatCommands, rest: str) -> list[str]:
    if rest:
        commands.conversation.use_model(rest)
    return [f"the model is {commands.conversation.model_name}"]


async def _usage(commands: ChatCommands, _rest: str) -> list[str]:
    return [describe_usage(commands.conversation.usage)]


async def _undo(commands: ChatCommands, _rest: str) -> list[str]:
    removed = await commands.conversation.undo()
    if not removed:
        return ["there is nothing to undo"]
    text = " ".join(part.text for part in removed[0].parts if isinstance(part, Text))
    return [f"undone: {shorten(text, _SHOWN_COLUMNS)}", *commands.restore(removed)]


async def _save(commands: ChatCommands, rest: str) -> list[str]:
    if rest and rest != commands.conversation.session.name:
        if await commands.sessions.exists(rest):
            return [f"there is already a session {rest}; /resume {rest} opens it"]
        await commands.conversation.rename(rest)
    return [
        f"saved as {commands.conversation.session.name}; dragoman chat --resume {commands.conversation.session.name}"
    ]


async def _resume(commands: ChatCommands, rest: str) -> list[str]:
    entries = await commands.sessions.list()
    if not rest:
        return [_session_row(entry) for entry in entries] or ["there are no saved sessions"]
    if not await commands.sessions.exists(rest):
        near = difflib.get_close_matches(rest, [entry.name for entry in entries], n=1)
        return [f"there is no session {rest}" + (f"; did you mean {near[0]}?" if near else "")]
    await commands.conversation.resume(rest)
    return [f"resumed {rest}, {len(commands.conversation.history)} messages"]


async def _compact(commands: ChatCommands, _rest: str) -> list[str]:
    stop = await commands.conversation.compact()
    return [stop.detail] if stop.detail else []


async def _clear(commands: ChatCommands, _rest: str) -> list[str]:
    before = commands.conversation.session.name
    await commands.conversation.clear()
    return [f"new conversation; the old one is saved as {before}"]


async def _quit(_commands: ChatCommands, _rest: str) -> list[str]:
    raise Quit


COMMANDS: dict[str, tuple[Callable[[ChatCommands, str], Awaitable[list[str]]], str]] = {
    "/help": (_help, "list the commands"),
    "/tools": (_tools, "list the model's tools"),
    "/model": (_model, "show the model; /model NAME changes it"),
    "/usage": (_usage, "show the tokens and cost of this session"),
    "/undo": (_undo, "undo the last turn and its file changes"),
    "/save": (_save, "show the name of this session; /save NAME renames it"),
    "/resume": (_resume, "list the saved sessions; /resume NAME opens one"),
    "/compact": (_compact, "replace the history by a summary"),
    "/clear": (_clear, "start a new conversation"),
    "/quit": (_quit, "quit the chat"),
}


def describe_usage(usage: SessionUsage) -> str:
    cost = "price unknown" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
    cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
    tokens = f"{usage.input_tokens:,} tokens in{cached}, {usage.output_tokens:,} out"
    return f"{usage.requests} requests, {tokens}, {cost}"


def _session_row(entry: SessionEntry) -> str:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used_s))
    return f"{entry.name}  {when}  {entry.messages} messages  {entry.title}"


PROMPT_LABEL = "> "


class Chat:
    """The chat loop; `run` returns when the user quits. A failed turn does not end the chat."""

    def __init__(
        self, commands: ChatCommands, screen: TerminalScreen, prompt: Prompt, style: TerminalStyle
    ) -> None:
        self._commands = commands
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
                self._screen.line(self._style.paint("press Ctrl-C again or Ctrl-D to quit", "dim"))
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
            self._commands.conversation.interrupt()
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
            for one in await run_slash_command(self._commands, line):
                self._screen.line(escape_controls(one))
            return
        async with self._screen.turn():
            stop = await self._commands.conversation.send(line)
        self._show_stop(stop)

    def _show_stop(self, stop: TurnEnd) -> None:
        if stop.reason == "interrupted":
            self._screen.line(self._style.paint("stopped", "yellow"))
        elif stop.reason != "done":
            self._show_error(f"{stop.reason.replace('_', ' ')}: {stop.detail}")
        self._screen.line(self._style.paint(describe_usage(self._commands.conversation.usage), "dim"))

    def _show_error(self, text: str) -> None:
        self._screen.line(self._style.paint(escape_controls(text), "red"))


def _is_cancelled() -> bool:
    """Return whether this task itself is being cancelled, not only the one it awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
