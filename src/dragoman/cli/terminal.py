"""Terminal output: results on stdout, everything else on stderr, colours and the spinner only on a terminal."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from typing import TextIO, TypeVar

_COLOUR_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class CommandError(Exception):
    """A command cannot continue: message, hint and exit code."""

    def __init__(self, message: str, *, hint: str = "", code: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code


def paint(text: str, colour: str, stream: TextIO) -> str:
    """Return the text in a colour, or unchanged if the stream shows none (https://no-color.org)."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty()
    return text if plain else f"\x1b[{_COLOUR_CODES[colour]}m{text}\x1b[0m"


def replace_controls(text: str) -> str:
    """Replace control characters in untrusted text, which could move the cursor or change colours."""
    return text if text.isprintable() else "".join(one if one.isprintable() else "�" for one in text)


def print_result(text: str) -> None:
    """Print a line of the result to stdout."""
    print(text, flush=True)


def print_status(text: str) -> None:
    """Print a remark to stderr."""
    print(f"{paint('dragoman:', 'dim', sys.stderr)} {text}", file=sys.stderr, flush=True)


def print_note(text: str) -> None:
    """Print a note to stderr; the command continues."""
    print(f"dragoman: {paint('note:', 'yellow', sys.stderr)} {text}", file=sys.stderr, flush=True)


def print_error(failure: CommandError) -> None:
    """Print the error that ends the command, with its hint."""
    print(f"dragoman: {paint('error:', 'red', sys.stderr)} {failure.message}", file=sys.stderr)
    if failure.hint:
        print(f"  {paint('hint:', 'cyan', sys.stderr)} {failure.hint}", file=sys.stderr)
    sys.stderr.flush()


T = TypeVar("T")

#: Shown while tools start: an MCP server may take seconds.
STARTING_TOOLS = "starting the tools"
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_ASCII_FRAMES = "|/-\\"
_DELAY_S = 0.5  # show nothing for operations that end sooner
_FRAME_S = 0.1
_CLEAR_LINE = "\r\x1b[K"


@contextlib.contextmanager
def spinner(what: str, stream: TextIO | None = None) -> Iterator[None]:
    """Show a spinner with `what` until the block ends; write nothing if the stream is not a terminal."""
    stream = stream or sys.stderr
    if not stream.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_spin, args=(what, stream, done), name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextlib.asynccontextmanager
async def enter_with_spinner(what: str, opens: contextlib.AbstractAsyncContextManager[T]) -> AsyncIterator[T]:
    """Enter a context manager while a spinner is shown."""
    async with contextlib.AsyncExitStack() as stack:
        with spinner(what):
            opened = await stack.enter_async_context(opens)
        yield opened


def _spin(what: str, stream: TextIO, done: threading.Event) -> None:
    if done.wait(_DELAY_S):
        return
    frames = _FRAMES if "utf" in (stream.encoding or "").lower() else _ASCII_FRAMES
    number = 0
    while True:
        stream.write(f"{_CLEAR_LINE}{frames[number % len(frames)]} {what}")
        stream.flush()
        if done.wait(_FRAME_S):
            break
        number += 1
    stream.write(_CLEAR_LINE)
    stream.flush()
