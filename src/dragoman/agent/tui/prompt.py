"""Read the user's input: with a line editor and history on a terminal, as plain lines otherwise."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyBindings

HISTORY_FILE = "chat_history"


class PromptInterrupted(Exception):
    """Ctrl-C was pressed at the prompt; a KeyboardInterrupt in a task would stop the event loop."""


class Prompt(Protocol):
    """Reads what the user types; raises `EOFError` on Ctrl-D and `PromptInterrupted` on Ctrl-C."""

    async def read(self, label: str, /) -> str: ...

    async def ask(self, label: str, /) -> str:
        """Read a short answer, which is not added to the history."""
        ...


def open_prompt(home: Path, words: Sequence[str]) -> Prompt:
    """Return the prompt for stdin; `words` are offered as completions, `home` holds the history file."""
    return EditorPrompt(home / HISTORY_FILE, words) if sys.stdin.isatty() else PlainPrompt()


class PlainPrompt:
    """Reads lines from a pipe or a file; a backslash at the end of a line continues it on the next one."""

    async def read(self, _label: str, /) -> str:
        lines: list[str] = []
        while True:
            line = await asyncio.to_thread(sys.stdin.readline)
            if not line and not lines:
                raise EOFError
            lines.append(line.rstrip("\n").removesuffix("\\"))
            if not line.endswith("\\\n"):
                return "\n".join(lines)

    async def ask(self, label: str) -> str:
        return await self.read(label)


class EditorPrompt:
    """A line editor: Enter sends, Alt-Enter or a backslash before Enter begins a new line, Up recalls history."""

    def __init__(self, history: Path, words: Sequence[str]) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import WordCompleter
        from prompt_toolkit.history import FileHistory

        os.close(os.open(history, os.O_CREAT | os.O_WRONLY, 0o600))
        self._typed: PromptSession[str] = PromptSession(
            history=FileHistory(str(history)),
            completer=WordCompleter(list(words), sentence=True),
            complete_while_typing=False,
            multiline=True,
            key_bindings=_bindings(),
            prompt_continuation=_continuation,
            interrupt_exception=PromptInterrupted,
        )
        self._asked: PromptSession[str] = PromptSession(interrupt_exception=PromptInterrupted)

    async def read(self, label: str) -> str:
        return await self._typed.prompt_async(label, handle_sigint=False)

    async def ask(self, label: str) -> str:
        try:
            return await self._asked.prompt_async(label, handle_sigint=False)
        except PromptInterrupted:
            signal.raise_signal(signal.SIGINT)  # the chat's signal handler interrupts the turn,
            await asyncio.Event().wait()  # which cancels this question
            raise


def _continuation(_width: int, _line: int, wraps: int) -> str:
    """Return the prefix of a continued line: `…` for a line the user began, spaces for a wrapped one."""
    return "  " if wraps else "… "


def _bindings() -> KeyBindings:
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    bindings = KeyBindings()

    @bindings.add("enter")
    @bindings.add("c-j")  # an Enter typed before the editor switched the terminal to raw mode
    def _enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @bindings.add("escape", "enter")
    @bindings.add("escape", "c-j")
    def _newline(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return bindings
