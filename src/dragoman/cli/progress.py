"""A spinner for slow operations, on a terminal only; it is erased at the end."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from typing import TextIO, TypeVar

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
