"""Where a person types: a line editor with a history on a terminal, plain lines everywhere else."""

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


class CtrlC(Exception):
    """The key; a KeyboardInterrupt inside a task would tear the event loop down."""


class Prompt(Protocol):
    """`read` gives what was typed; EOFError for Ctrl-D, CtrlC for Ctrl-C."""

    async def read(self, label: str, /) -> str: ...

    async def ask(self, label: str, /) -> str:
        """A short answer, which is not kept."""
        ...


def open_prompt(home: Path, words: Sequence[str]) -> Prompt:
    return EditorPrompt(home / HISTORY_FILE, words) if sys.stdin.isatty() else PlainPrompt()


class PlainPrompt:
    """Lines from a pipe or a file; a backslash at the end continues on the next line."""

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
    """Enter sends; Alt-Enter or a backslash before Enter begins a new line; the up arrow goes back."""

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
            interrupt_exception=CtrlC,
        )
        self._asked: PromptSession[str] = PromptSession(interrupt_exception=CtrlC)

    async def read(self, label: str) -> str:
        return await self._typed.prompt_async(label, handle_sigint=False)

    async def ask(self, label: str) -> str:
        try:
            return await self._asked.prompt_async(label, handle_sigint=False)
        except CtrlC:
            signal.raise_signal(signal.SIGINT)  # here it is a key; everywhere else it ends the turn
            await asyncio.Event().wait()  # and this question with it
            raise


def _continuation(_width: int, _line: int, wraps: int) -> str:
    """Lines of the user's own are marked, lines that are only too long are not."""
    return "  " if wraps else "… "


def _bindings() -> KeyBindings:
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    bindings = KeyBindings()

    @bindings.add("enter")
    @bindings.add("c-j")  # an Enter that was typed while nobody read the keys
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
