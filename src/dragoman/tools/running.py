"""Run an executor with a timeout: async executors as a task, sync ones in a daemon thread."""

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


class ExecutorTimeout(Exception):
    """The executor exceeded its timeout."""


#: How long a cancelled task may take to clean up; after that it is abandoned and its result discarded.
CANCEL_GRACE_S = 2.0


async def run_with_timeout(
    execute: Executor,
    args: dict[str, Any],
    context: Context,
    *,
    timeout_s: float,
    grace_s: float = CANCEL_GRACE_S,
) -> Any:
    """Run the executor and return its value. Raise `OutOfTime` after `timeout_s`, whatever it is doing.

    Cancelling the caller cancels the executor. A thread cannot be killed: it runs on, its `context.stopped()`
    returns True, and its result is discarded.
    """
    loop = asyncio.get_running_loop()
    over = threading.Event()
    watched = _context_until(context, loop, over)
    task = loop.create_task(_run_executor(execute, args, watched))
    try:
        done, _ = await asyncio.wait({task}, timeout=timeout_s)
    except asyncio.CancelledError:
        over.set()
        await _cancel(task, grace_s)
        raise
    over.set()
    if not done:
        await _cancel(task, grace_s)
        raise ExecutorTimeout
    if task.cancelled():
        raise ToolFailed("the tool cancelled itself")
    return task.result()


def _context_until(context: Context, loop: asyncio.AbstractEventLoop, over: threading.Event) -> Context:
    """Wrap the context: progress is reported in the event loop's thread and dropped once `over` is set."""

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


async def _run_executor(execute: Executor, args: dict[str, Any], context: Context) -> Any:
    try:
        value = execute(args, context) if is_async(execute) else await _run_in_thread(execute, args, context)
        return await value if inspect.isawaitable(value) else value
    except SystemExit as error:  # must not end the whole program
        raise ToolFailed(f"the tool called exit({error.code})") from None


async def _run_in_thread(execute: Executor, args: dict[str, Any], context: Context) -> Any:
    """Run the executor in its own daemon thread.

    Tools that hang would block a thread pool, and non-daemon threads would block the interpreter's exit.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    inherited = contextvars.copy_context()

    def work() -> None:
        try:
            value = inherited.run(execute, args, context)
        except BaseException as error:  # raised again in the awaiting task
            _call_soon(loop, _set_outcome, future, None, error)
        else:
            _call_soon(loop, _set_outcome, future, value, None)

    threading.Thread(target=work, name="dragoman-tool", daemon=True).start()
    return await future


def _set_outcome(future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if future.done():
        if isinstance(value, Coroutine):
            value.close()  # avoids the "never awaited" warning
    elif error is None:
        future.set_result(value)
    else:
        # A future rejects StopIteration, and a KeyboardInterrupt must not stop the event loop.
        odd = isinstance(error, StopIteration | KeyboardInterrupt)
        future.set_exception(RuntimeError(type(error).__name__) if odd else error)


def _call_soon(loop: asyncio.AbstractEventLoop, *call: Any) -> None:
    try:
        loop.call_soon_threadsafe(*call)
    except RuntimeError:  # the event loop is closed
        return


async def _cancel(task: asyncio.Task[Any], grace_s: float) -> None:
    task.add_done_callback(_retrieve_exception)
    task.cancel()
    await asyncio.wait({task}, timeout=grace_s)


def _retrieve_exception(task: asyncio.Task[Any]) -> None:
    """Retrieve the exception of an abandoned task, or asyncio logs that it was never retrieved."""
    if not task.cancelled():
        task.exception()
