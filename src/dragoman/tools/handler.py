"""`Handler`: executes tool calls.

Each call passes the same steps: look up the tool, validate the arguments, ask the `Guard` for permission, execute
with a timeout (async executors as a task, sync ones in a daemon thread), truncate the output, update the metrics,
write the `Journal` entry. Results of deterministic tools can be cached.

Every failure of a call becomes an error result for the model. `execute` raises only when it is cancelled itself,
or when the journal cannot be written: an unrecorded execution must not go unnoticed.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Literal, Protocol

import msgspec

from dragoman.config import check_strict_extra
from dragoman.incremental.lru import LruCache
from dragoman.ir import ToolCall, ToolResult
from dragoman.notes import Note
from dragoman.schema import check_args, check_args_strictly, repair_args
from dragoman.tools.definition import Context, Executor, ToolDefinition, ToolOutput, is_async
from dragoman.tools.errors import ToolError, ToolFailed, ToolRefused
from dragoman.tools.registry import Registry
from dragoman.tools.results import canonical, cap_output, error_output, size_of, to_output, to_result

#: How an execution ended.
Outcome = Literal["ok", "failed", "refused", "timeout", "cancelled", "unknown", "invalid"]


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a call may run, the reason, and what decided it (`by`: a rule, a person, a default)."""

    allowed: bool
    reason: str = ""
    by: str = ""


class Guard(Protocol):
    """Decides whether a call may run; an exception counts as a denial."""

    async def decide(
        self, definition: ToolDefinition, args: dict[str, Any], context: Context
    ) -> Decision: ...


class ExecutionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the journal."""

    session: str
    caller: str
    tool: str
    args: bytes
    is_error: bool
    result_bytes: int
    duration_s: float
    decision: Decision
    at_s: float  # start, in seconds since the epoch
    outcome: Outcome = "ok"
    cached: bool = False
    request: str = ""
    profile: str = ""


class Journal(Protocol):
    """Records executions; an exception is raised to the caller of the handler."""

    def record(self, entry: ExecutionRecord) -> None: ...


ALLOWED_WITHOUT_GUARD = Decision(allowed=True, by="no guard")
NOT_DECIDED = Decision(allowed=False, by="not asked")


#: Key for all calls of tools that do not exist: a model can invent any number of names, so they share one entry.
UNKNOWN_TOOL = "(unknown)"


class ToolMetrics(msgspec.Struct, kw_only=True):
    """The counters of one tool."""

    calls: int = 0
    errors: int = 0  # all error results, including the four kinds below
    timeouts: int = 0
    refused: int = 0
    invalid: int = 0  # arguments that do not match the schema
    cancelled: int = 0
    cached: int = 0
    seconds: float = 0.0
    bytes: int = 0


_OUTCOME_COUNTERS: dict[Outcome, str] = {
    "timeout": "timeouts",
    "refused": "refused",
    "invalid": "invalid",
    "cancelled": "cancelled",
}


def count_call(metrics: ToolMetrics, outcome: Outcome, *, is_error: bool, seconds: float, size: int) -> None:
    """Add one call to the counters."""
    metrics.calls += 1
    metrics.errors += is_error
    metrics.seconds += seconds
    metrics.bytes += size
    if outcome in _OUTCOME_COUNTERS:
        name = _OUTCOME_COUNTERS[outcome]
        setattr(metrics, name, getattr(metrics, name) + 1)


_CACHE_ENTRY_OVERHEAD_BYTES = 300


class ResultCache:
    """Caches results of tools declared deterministic, but no errors: a failed call may succeed the next time."""

    def __init__(self, max_bytes: int) -> None:
        self._memo: LruCache[tuple[object, bytes], ToolOutput] = LruCache(max_bytes)

    def get(self, definition: ToolDefinition, args: dict[str, Any]) -> ToolOutput | None:
        return self._memo.find(_cache_key(definition, args)) if definition.deterministic else None

    def put(self, definition: ToolDefinition, args: dict[str, Any], output: ToolOutput) -> None:
        if definition.deterministic and not output.is_error:
            key = _cache_key(definition, args)
            self._memo.put(key, size_of(output) + len(key[1]) + _CACHE_ENTRY_OVERHEAD_BYTES, output)


def _cache_key(definition: ToolDefinition, args: dict[str, Any]) -> tuple[object, bytes]:
    """Key by the executor, not by the name: a tool that replaces another must not see its results."""
    return definition.execute, canonical(args)


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
    """Run the executor and return its value. Raise `ExecutorTimeout` after `timeout_s`, whatever it is doing.

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


DEFAULT_TIMEOUT_S = 30.0
DEFAULT_MAX_OUTPUT_BYTES = 256 * 1024
_MAX_PROBLEMS = 5
_DEFAULT_CONTEXT = Context()


class ExecutionResult(msgspec.Struct, frozen=True, kw_only=True):
    """A result, how the call ended, and what decided about it."""

    result: ToolResult
    outcome: Outcome
    duration_s: float
    decision: Decision = NOT_DECIDED
    cached: bool = False
    notes: tuple[Note, ...] = ()  # repairs of the arguments, or why strict validation was not possible


class _CallState(msgspec.Struct, kw_only=True):
    """The state of one call while it is executed; the outcome is "cancelled" until something else is known."""

    output: ToolOutput = ToolOutput()
    outcome: Outcome = "cancelled"
    decision: Decision = NOT_DECIDED
    args: bytes = b"{}"
    cached: bool = False
    notes: tuple[Note, ...] = ()

    def end(self, outcome: Outcome, message: str) -> None:
        self.outcome, self.output = outcome, error_output(message)


class Handler:
    """Executes calls of the tools in a registry.

    `guard` decides whether a call may run; without one every call is allowed. `journal` records every execution.
    `strict` rejects arguments that the default mode would repair, and needs the `strict` extra. `cache_bytes` is
    the size of the cache for deterministic tools. `clock` measures durations; `now` returns seconds since the
    epoch.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES,
        guard: Guard | None = None,
        journal: Journal | None = None,
        strict: bool = False,
        cache_bytes: int = 0,
        max_parallel: int = 16,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        if strict:
            check_strict_extra("Handler(strict=True)")
        self.registry = registry
        self.metrics: dict[str, ToolMetrics] = {}
        self._timeout_s = timeout_s
        self._max_output_bytes = max_output_bytes
        self.guard = guard
        self._journal = journal
        self._strict = strict
        self._cache = ResultCache(cache_bytes)
        self._max_parallel = max_parallel
        self._clock = clock
        self._now = now

    async def execute(self, call: ToolCall, context: Context = _DEFAULT_CONTEXT) -> ToolResult:
        """Execute one call and return its result; see the module's docstring for what it raises."""
        return (await self.run(call, context)).result

    async def execute_all(
        self, calls: Sequence[ToolCall], context: Context = _DEFAULT_CONTEXT
    ) -> list[ToolResult]:
        """Execute calls concurrently, at most `max_parallel` at a time; return results in the calls' order."""
        semaphore = asyncio.Semaphore(self._max_parallel)

        async def one(call: ToolCall) -> ToolResult:
            async with semaphore:
                return await self.execute(call, context)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(call)) for call in calls]
        return [task.result() for task in tasks]

    async def run(self, call: ToolCall, context: Context = _DEFAULT_CONTEXT) -> ExecutionResult:
        """Execute one call, as `execute` does, and return the result with outcome, duration and decision."""
        state = _CallState(args=call.args)
        began_s, at_s = self._clock(), self._now()
        definition = self.registry.get(call.name)
        try:
            if definition is None:
                state.end("unknown", self.registry.explain_unknown(call.name))
            else:
                await self._attempt(definition, call, context, state)
        finally:
            duration_s = self._clock() - began_s
            self._count(call.name if definition else UNKNOWN_TOOL, state, duration_s)
            self._record(call.name, context, state, at_s, duration_s)
        return ExecutionResult(
            result=to_result(state.output, call),
            outcome=state.outcome,
            duration_s=duration_s,
            decision=state.decision,
            cached=state.cached,
            notes=state.notes,
        )

    async def _attempt(
        self, definition: ToolDefinition, call: ToolCall, context: Context, state: _CallState
    ) -> None:
        problems = self._read_args(definition, call, state)
        if problems:
            detail = "; ".join(problems[:_MAX_PROBLEMS])
            state.end("invalid", f"The arguments of {call.name} do not fit its schema: {detail}")
            return
        args = msgspec.json.decode(state.args, type=dict[str, Any])
        state.decision = await self._decide(definition, args, context)
        if not state.decision.allowed:
            state.end("refused", state.decision.reason or f"{call.name} was not allowed.")
            return
        known = self._cache.get(definition, args)
        if known is not None:
            state.output, state.outcome, state.cached = known, "ok", True
            return
        await self._perform(definition, args, context, state)
        self._cache.put(definition, args, state.output)

    def _read_args(self, definition: ToolDefinition, call: ToolCall, state: _CallState) -> tuple[str, ...]:
        if self._strict:
            problems, state.notes = check_args_strictly(call.args, definition.schema, where=call.name)
            return problems
        state.args, state.notes = repair_args(call.args, definition.schema, where=call.name)
        return check_args(state.args, definition.schema)

    async def _decide(self, definition: ToolDefinition, args: dict[str, Any], context: Context) -> Decision:
        if self.guard is None:
            return ALLOWED_WITHOUT_GUARD
        try:
            return await self.guard.decide(definition, args, context)
        except Exception as error:  # a guard that raises denies the call
            reason = f"The permission for {definition.name} could not be checked: {_describe(error)}"
            return Decision(allowed=False, reason=reason, by="a broken guard")

    async def _perform(
        self, definition: ToolDefinition, args: dict[str, Any], context: Context, state: _CallState
    ) -> None:
        timeout_s = definition.timeout_s or self._timeout_s
        try:
            if definition.execute is None:
                raise ToolFailed(f"{definition.name} is only declared here: nobody can run it.")
            value = await run_with_timeout(definition.execute, args, context, timeout_s=timeout_s)
            output = to_output(value)
            state.outcome = "failed" if output.is_error else "ok"
            state.output = cap_output(output, self._max_output_bytes)
        except ExecutorTimeout:
            state.end("timeout", f"{definition.name} was stopped: it took longer than {timeout_s:g} s.")
        except ToolError as error:
            state.end("refused" if isinstance(error, ToolRefused) else "failed", str(error))
        except Exception as error:  # reported to the model as an error result
            state.end("failed", _describe(error))
        if state.output.is_error:
            state.output = cap_output(state.output, self._max_output_bytes)

    def _count(self, name: str, state: _CallState, duration_s: float) -> None:
        metrics = self.metrics.setdefault(name, ToolMetrics())
        size = size_of(state.output)
        count_call(metrics, state.outcome, is_error=state.outcome != "ok", seconds=duration_s, size=size)
        metrics.cached += state.cached

    def _record(self, name: str, context: Context, state: _CallState, at_s: float, duration_s: float) -> None:
        if self._journal is None:
            return
        entry = ExecutionRecord(
            session=context.session,
            caller=context.caller,
            tool=name,
            args=state.args,
            is_error=state.outcome != "ok",
            result_bytes=size_of(state.output),
            duration_s=duration_s,
            decision=state.decision,
            at_s=at_s,
            outcome=state.outcome,
            cached=state.cached,
            request=context.request,
            profile=context.profile,
        )
        self._journal.record(entry)


def _describe(error: BaseException) -> str:
    words = str(error).strip()
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


__all__ = [
    "Decision",
    "ExecutionRecord",
    "ExecutionResult",
    "Guard",
    "Handler",
    "Journal",
    "Outcome",
]
