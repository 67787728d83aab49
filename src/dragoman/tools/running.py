"""One executor, run so that it can be stopped: async ones as a task, sync ones in a thread of their own."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Coroutine
from typing import Any

import msgspec

from dragoman.tools.definition import Context, Executor, is_async
from dragoman.tools.errors import ToolFailed


class OutOfTime(Exception):
    """The executor took longer than it may."""


#: How long a task may take to tidy up once it is cancelled; then it is left alone and its result dropped.
GRACE_S = 2.0


async def run(
    execute: Executor, args: dict[str, Any], context: Context, *, timeout_s: float, grace_s: float = GRACE_S
) -> Any:
    """What the executor returns; `OutOfTime` when its time is over, at once, whatever it is doing.

    Cancelling the caller cancels the work. A thread cannot be killed: its result is dropped, and its
    `context.stopped()` says so.
    """
    loop = asyncio.get_running_loop()
    over = threading.Event()
    watched = _watched(context, loop, over)
    task = loop.create_task(_work(execute, args, watched))
    try:
        done, _ = await asyncio.wait({task}, timeout=timeout_s)
    except asyncio.CancelledError:
        over.set()
        await _end(task, grace_s)
        raise
    over.set()
    if not done:
        await _end(task, grace_s)
        raise OutOfTime
    if task.cancelled():
        raise ToolFailed("the tool cancelled itself")
    return task.result()


def _watched(context: Context, loop: asyncio.AbstractEventLoop, over: threading.Event) -> Context:
    """Progress is told in the loop's own thread, and never after the end."""

    def tell(line: str) -> None:
        if not over.is_set():
            context.progress(line)

    def progress(line: str) -> None:
        if threading.get_ident() == home:
            tell(line)
        else:
            _call_soon(loop, tell, line)

    def stopped() -> bool:
        return over.is_set() or context.stopped()

    home = threading.get_ident()
    return msgspec.structs.replace(context, progress=progress, stopped=stopped)


async def _work(execute: Executor, args: dict[str, Any], context: Context) -> Any:
    try:
        value = execute(args, context) if is_async(execute) else await _in_thread(execute, args, context)
        return await value if inspect.isawaitable(value) else value
    except SystemExit as error:  # a tool may end itself, not the program
        raise ToolFailed(f"the tool called exit({error.code})") from None


async def _in_thread(execute: Executor, args: dict[str, Any], context: Context) -> Any:
    """A daemon thread per call: a pool would be blocked by tools that hang, and so would the program's end."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    inherited = contextvars.copy_context()

    def work() -> None:
        try:
            value = inherited.run(execute, args, context)
        except BaseException as error:  # raised again where it is awaited
            _call_soon(loop, _settle, future, None, error)
        else:
            _call_soon(loop, _settle, future, value, None)

    threading.Thread(target=work, name="dragoman-tool", daemon=True).start()
    return await future


def _settle(future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if future.done():
        if isinstance(value, Coroutine):
            value.close()  # nobody will await it
    elif error is None:
        future.set_result(value)
    else:
        # StopIteration may not travel through a future; Ctrl-C is never the thread's.
        odd = isinstance(error, StopIteration | KeyboardInterrupt)
        future.set_exception(RuntimeError(type(error).__name__) if odd else error)


def _call_soon(loop: asyncio.AbstractEventLoop, *call: Any) -> None:
    try:
        loop.call_soon_threadsafe(*call)
    except RuntimeError:  # the loop is closed: nobody waits
        return


async def _end(task: asyncio.Task[Any], grace_s: float) -> None:
    task.add_done_callback(_forget)
    task.cancel()
    await asyncio.wait({task}, timeout=grace_s)


def _forget(task: asyncio.Task[Any]) -> None:
    """Look at what is dropped, or asyncio complains about it."""
    if not task.cancelled():
        task.exception()
