"""Executors can be stopped, in a task or in a thread, and never upset the loop."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any

import pytest

from dragoman.tools import Context
from dragoman.tools.handler import ExecutorTimeout, run_with_timeout

WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who")


def tool_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "dragoman-tool"]


async def test_a_sync_executor_has_its_thread_its_context_and_its_progress_in_order() -> None:
    told: list[tuple[str, int]] = []

    def work(args: dict[str, Any], context: Context) -> str:
        context.progress("one")
        context.progress("two")
        assert not context.stopped()
        return f"{WHO.get()} {args['a']} {threading.current_thread().name}"

    WHO.set("me")
    context = Context(progress=lambda line: told.append((line, threading.get_ident())))
    assert await run_with_timeout(work, {"a": 1}, context, timeout_s=5) == "me 1 dragoman-tool"
    here = threading.get_ident()
    assert told == [("one", here), ("two", here)], "told where the loop runs"


async def test_an_async_executor_runs_in_the_loop() -> None:
    told: list[str] = []

    async def work(_args: dict[str, Any], context: Context) -> int:
        context.progress("here")
        return threading.get_ident()

    assert (
        await run_with_timeout(work, {}, Context(progress=told.append), timeout_s=5) == threading.get_ident()
    )
    assert told == ["here"]


async def test_a_sync_executor_may_return_something_to_wait_for() -> None:
    async def later() -> str:
        await asyncio.sleep(0)
        return "later"

    assert await run_with_timeout(lambda _args, _context: later(), {}, Context(), timeout_s=5) == "later"


async def test_a_task_that_does_not_listen_is_left_alone_after_a_grace() -> None:
    release = asyncio.Event()

    async def stubborn(_args: dict[str, Any], _context: Context) -> str:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        raise ValueError("nobody hears this")

    with pytest.raises(ExecutorTimeout):
        await run_with_timeout(stubborn, {}, Context(), timeout_s=0.01, grace_s=0.01)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert len(left) == 1
    release.set()
    await asyncio.wait(left)


async def test_what_a_thread_returns_too_late_is_dropped_without_a_word() -> None:
    release = threading.Event()
    made: list[Any] = []

    async def later() -> None: ...

    def returns(_args: dict[str, Any], _context: Context) -> Any:
        release.wait(30)
        made.append(later())
        return made[0]

    def raises(_args: dict[str, Any], _context: Context) -> Any:
        release.wait(30)
        raise ValueError("late")

    for work in (returns, raises):
        with pytest.raises(ExecutorTimeout):
            await run_with_timeout(work, {}, Context(), timeout_s=0.01)
    release.set()
    for thread in tool_threads():
        await asyncio.to_thread(thread.join, 10)
    await asyncio.sleep(0)
    assert made[0].cr_frame is None, "a coroutine that nobody will await is closed"


def test_a_thread_that_outlives_the_loop_does_not_hold_the_program() -> None:
    release = threading.Event()

    def stuck(_args: dict[str, Any], context: Context) -> str:
        release.wait(30)
        context.progress("into the void")
        return "void"

    with pytest.raises(ExecutorTimeout):
        asyncio.run(run_with_timeout(stuck, {}, Context(), timeout_s=0.01))
    thread = tool_threads()[0]
    assert thread.daemon
    release.set()
    thread.join(10)
    assert not thread.is_alive()


async def test_cancelling_the_caller_tells_the_thread() -> None:
    began, seen = threading.Event(), threading.Event()

    def work(_args: dict[str, Any], context: Context) -> None:
        began.set()
        while not context.stopped():
            pass
        seen.set()

    task = asyncio.create_task(run_with_timeout(work, {}, Context(), timeout_s=60))
    await asyncio.to_thread(began.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(seen.wait, 10)


async def test_a_caller_that_is_stopped_stops_its_tools() -> None:
    def work(_args: dict[str, Any], context: Context) -> bool:
        return context.stopped()

    assert await run_with_timeout(work, {}, Context(stopped=lambda: True), timeout_s=5) is True
